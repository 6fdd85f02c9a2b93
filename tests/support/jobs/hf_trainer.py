"""A tiny job of the Hugging Face Trainer: 12 steps of two batches, with evaluation and saving."""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from typing import Any

import torch
from torch import nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import Trainer, TrainingArguments


class Model(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Doubles its input, as it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, inputs: Any, labels: Any) -> dict[str, Any]:
        """Loss and outputs, as the Trainer wants them."""
        if not self.training:
            time.sleep(0.01)  # an evaluation that is long enough to be told
        logits = self.linear(inputs)
        return {"loss": nn.functional.mse_loss(logits, labels), "logits": logits}


def samples(count: int) -> list[dict[str, Any]]:
    inputs = torch.randn(count, 8)
    return [{"inputs": each, "labels": each * 2} for each in inputs]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--callback", action="store_true")
    callbacks: list[Any] = []
    if parser.parse_args().callback:
        from vramscope.integrations.transformers import VramscopeCallback

        callbacks.append(VramscopeCallback())
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=2,
            gradient_accumulation_steps=2,
            max_steps=12,
            logging_steps=1,
            eval_strategy="steps",
            eval_steps=6,
            save_strategy="steps",
            save_steps=6,
        )
        trainer = Trainer(
            model=Model(),
            args=arguments,
            train_dataset=samples(96),
            eval_dataset=samples(40),
            callbacks=callbacks,
        )
        trainer.train()
    for entry in trainer.state.log_history:
        if "loss" in entry:
            print("loss", entry["loss"].hex())


if __name__ == "__main__":
    main()

"""A tiny loop with accelerate: two epochs of 6 steps of two batches, with evaluation and saving."""

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
    from accelerate import Accelerator


class SlowState:
    """State that takes its time to be saved, as a large model does."""

    def state_dict(self) -> dict[str, Any]:
        """What is saved."""
        return {"slow": SlowState()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""

    def __reduce__(self) -> tuple[Any, ...]:
        time.sleep(0.1)
        return dict, ()


def loader(samples: int) -> Any:
    return torch.utils.data.DataLoader(torch.randn(samples, 8), batch_size=4)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--callback", action="store_true")
    trackers: list[Any] = []
    if parser.parse_args().callback:
        from vramscope.integrations.accelerate import VramscopeTracker

        trackers.append(VramscopeTracker())
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, log_with=trackers or None)
    accelerator.init_trackers("tiny")
    prepared = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters()), loader(48), loader(80)
    )
    model, optimizer, train_loader, eval_loader = prepared
    accelerator.register_for_checkpointing(SlowState())
    for epoch in range(2):
        for batch in train_loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(batch), batch * 2)
                accelerator.backward(loss)
                accelerator.log({"loss": loss.item(), "epoch": epoch, "batch_size": len(batch)})
                optimizer.step()
                optimizer.zero_grad()
            print("loss", loss.item().hex())
        for batch in eval_loader:
            with torch.no_grad():
                model(batch)
                time.sleep(0.01)  # an evaluation that is long enough to be told
        with tempfile.TemporaryDirectory() as folder:
            accelerator.save_state(folder)
    accelerator.end_training()


if __name__ == "__main__":
    main()

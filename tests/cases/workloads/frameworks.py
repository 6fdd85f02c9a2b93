"""Workloads of Hugging Face and Lightning, with models that are made small."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from tests.cases.workloads.loop import DEVICE, learn

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}


class Texts(Dataset[Any]):  # type: ignore[misc]  # torch is untyped here
    """Numbered texts, of one length or of any."""

    def __init__(self, count: int, *, length: int = 32, spread: int = 0) -> None:
        rng = random.Random(0)
        self.lengths = [length + rng.randint(-spread, spread) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        tokens = torch.arange(self.lengths[index]) * (index + 7) % 500
        return {"input_ids": tokens, "labels": tokens.clone()}


def padded(items: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """A batch as long as its longest text."""
    return {
        name: nn.utils.rnn.pad_sequence([item[name] for item in items], batch_first=True)
        for name in items[0]
    }


def _trained(model: Any, steps: int, spread: int = 0, **options: Any) -> None:
    from transformers import Trainer, TrainingArguments

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=4,
            report_to=[],
            disable_tqdm=True,
            logging_steps=100,
            use_cpu=DEVICE == "cpu",
            **{"save_strategy": "no", **options},
        )
        Trainer(
            model=model,
            args=arguments,
            data_collator=padded,
            train_dataset=Texts(4000, spread=spread),
            eval_dataset=Texts(64, spread=spread),
        ).train()


def trainer_bert(steps: int) -> None:
    """The Trainer, evaluating and saving every so often."""
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(BertConfig(vocab_size=512, max_position_embeddings=64, **SMALL))
    options: dict[str, Any] = {"eval_strategy": "steps", "eval_steps": 200}
    _trained(model, steps, save_strategy="steps", save_steps=400, save_total_limit=1, **options)


def trainer_gpt(steps: int) -> None:
    """The Trainer with texts of any length and gradients of two batches."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=512, n_positions=64, n_embd=32, n_layer=2, n_head=2)
    _trained(GPT2LMHeadModel(config), steps, spread=20, gradient_accumulation_steps=2)


def trainer_llama(steps: int) -> None:
    """The Trainer with activation checkpointing."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=512, max_position_embeddings=64, **SMALL)
    _trained(LlamaForCausalLM(config), steps, spread=8, gradient_checkpointing=True)


def accelerated(steps: int) -> None:
    """Accelerate with gradients of two batches, a loop by hand."""
    from accelerate import Accelerator
    from transformers import ViTConfig, ViTForImageClassification

    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=DEVICE == "cpu")
    config = ViTConfig(image_size=32, patch_size=8, num_labels=10, **SMALL)
    model = ViTForImageClassification(config)
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(2 * steps):
        with accelerator.accumulate(model):
            images = torch.randn(4, 3, 32, 32, device=accelerator.device)
            accelerator.backward(model(images).logits.square().mean())
            optimizer.step()
            optimizer.zero_grad()


def lightning_fit(steps: int) -> None:
    """Lightning with validation, a metric that is reset, and checkpoints."""
    import lightning
    from torchmetrics import MeanSquaredError

    class Module(lightning.LightningModule):  # type: ignore[misc]  # untyped here
        def __init__(self) -> None:
            super().__init__()
            self.model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
            self.error = MeanSquaredError()

        def training_step(self, batch: Tensor, index: int) -> Tensor:
            loss: Tensor = (self.model(batch) - batch).square().mean()
            self.log("loss", loss)
            return loss

        def validation_step(self, batch: Tensor, index: int) -> None:
            self.error(self.model(batch), batch)
            self.log("error", self.error)

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters())

    with tempfile.TemporaryDirectory() as folder:
        lightning.Trainer(
            max_steps=steps,
            accelerator="auto" if DEVICE == "cuda" else "cpu",
            devices=1,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=Path(folder),
            check_val_every_n_epoch=1,
        ).fit(
            Module(),
            DataLoader(torch.randn(200 * 16, 64), batch_size=16, shuffle=True),
            DataLoader(torch.randn(20 * 16, 64), batch_size=16),
        )


def lightning_by_hand(steps: int) -> None:
    """Lightning with two optimizers that step by turns."""
    import lightning

    class Module(lightning.LightningModule):  # type: ignore[misc]  # untyped here
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False
            self.first = nn.Linear(64, 64)
            self.second = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))

        def training_step(self, batch: Tensor, index: int) -> None:
            optimizer = self.optimizers()[index % 2]
            self.toggle_optimizer(optimizer)
            value = self.second(self.first(batch)).mean()
            optimizer.zero_grad()
            self.manual_backward(value if index % 2 else -value)
            optimizer.step()
            self.untoggle_optimizer(optimizer)

        def configure_optimizers(self) -> Any:
            return (
                torch.optim.Adam(self.first.parameters()),
                torch.optim.Adam(self.second.parameters()),
            )

    lightning.Trainer(
        max_steps=2 * steps,  # every second is one of the other optimizer
        accelerator="auto" if DEVICE == "cuda" else "cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(Module(), DataLoader(torch.randn(4096, 64), batch_size=16))


def ignite_loop(steps: int) -> None:
    """Ignite, evaluating every two hundred steps."""
    from ignite.engine import Engine, Events

    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())

    def update(engine: Any, batch: Tensor) -> float:
        return learn(optimizer, model(batch.to(DEVICE)).square().mean())

    def judge(engine: Any, batch: Tensor) -> float:
        with torch.no_grad():
            return float(model(batch.to(DEVICE)).mean())

    trainer, evaluator = Engine(update), Engine(judge)
    held_out = DataLoader(torch.randn(512, 64), batch_size=64)
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED(every=200), lambda engine: evaluator.run(held_out)
    )
    trainer.run(DataLoader(torch.randn(steps * 8, 64), batch_size=8), max_epochs=1)

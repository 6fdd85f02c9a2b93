"""Jobs of real frameworks whose sizes are changed on the way; prints what became of each.

python resized.py FRAMEWORK SCENARIO...     a scenario is JSON: the fields of ``Scenario``
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import nn

from tests.support.resize_rig import ResizeRig
from vramscope.batching.declared_batch_size import BatchSize, declare, forget_declared

warnings.simplefilter("ignore")


class Scenario(msgspec.Struct):
    """What is trained, and when which sizes are changed."""

    samples: int = 96
    size: int = 8
    accumulation: int = 1
    epochs: int = 2
    workers: int = 0
    drop_last: bool = False
    changes: list[tuple[int, dict[str, Any]]] = []
    """Steps at whose ends parameters of ``set_batch_size`` are sent, with ``name`` for others."""
    split: bool = False
    """accelerate's ``split_batches``."""
    uses_accumulate: bool = True
    iterable: bool = False
    unequal: bool = False
    """Several ranks without a sampler that divides the samples."""
    more_workers: bool = False
    """Each rank has more workers than the one before."""


class Told(msgspec.Struct):
    """What came of it."""

    epochs: list[list[int]]
    """Samples as they were trained on, by epoch."""
    sizes: list[list[int]]
    """Those of each batch."""
    steps: int
    rates: list[float]
    """Learning rate of each step."""
    receipts: list[dict[str, Any]]
    rows: list[list[int]]
    """Samples, batches and largest batch of each step, as its row has them."""


class Data(torch.utils.data.Dataset[Any]):  # type: ignore[misc]  # torch is untyped here
    """Numbered samples."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"number": torch.tensor(index), "labels": torch.tensor([1.0])}


class Stream(torch.utils.data.IterableDataset[Any]):  # type: ignore[misc]  # untyped here
    """The same, of unknown length."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __iter__(self) -> Any:
        info = torch.utils.data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        data = Data(self._count)
        return (data[each] for each in range(first, self._count, step))


class Model(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """One weight, and what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.sizes: list[int] = []
        self.numbers: list[int] = []

    def forward(self, number: Any, labels: Any) -> dict[str, Any]:
        """Loss of a batch."""
        if self.training:
            self.sizes.append(len(number))
            self.numbers += number.tolist()
        loss = ((self.weight - labels) ** 2).mean()
        return {"loss": loss}


def in_epochs(model: Model, ends: list[int]) -> tuple[list[list[int]], list[list[int]]]:
    """Numbers and sizes by epoch, given the batches that were there at each end."""
    numbers, sizes, at, batch = [], [], 0, 0
    for end in ends:
        sizes.append(model.sizes[batch:end])
        count = sum(sizes[-1])
        numbers.append(model.numbers[at : at + count])
        at, batch = at + count, end
    return numbers, sizes


WORLD = int(os.environ.get("WORLD_SIZE", "1"))


def loader(scenario: Scenario, sampler: Any = None) -> Any:
    data: Any = (Stream if scenario.iterable else Data)(scenario.samples)
    return torch.utils.data.DataLoader(
        data,
        batch_size=scenario.size * (WORLD if scenario.split else 1),
        drop_last=scenario.drop_last,
        shuffle=None if scenario.iterable or sampler is not None else True,
        sampler=sampler,
        num_workers=scenario.workers,
    )


def total_steps(scenario: Scenario) -> int:
    batches = -(-scenario.samples // (scenario.size * WORLD))
    return scenario.epochs * -(-batches // scenario.accumulation)


def run_plain(scenario: Scenario, rig: ResizeRig) -> tuple[Model, list[int], list[float]]:
    model, sampler = Model(), None
    forward: Any = model
    if WORLD > 1:
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")
        if not scenario.unequal:
            sampler = torch.utils.data.DistributedSampler(Data(scenario.samples))
        forward = nn.parallel.DistributedDataParallel(model)
    workers = scenario.workers
    if scenario.more_workers:
        workers += int(os.environ["RANK"])
    data = loader(msgspec.structs.replace(scenario, workers=workers), sampler)
    sizes = BatchSize(data, scenario.accumulation)
    declare(sizes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ends, rates = [], []
    for _ in range(scenario.epochs):
        for number, batch in enumerate(data, 1):
            (forward(**batch)["loss"] / sizes.accumulation).backward()
            if number % sizes.accumulation == 0:
                optimizer.step()
                optimizer.zero_grad()
                rates.append(0.1)
        ends.append(len(model.sizes))
    return model, ends, rates


def run_accelerate(scenario: Scenario, rig: ResizeRig) -> tuple[Model, list[int], list[float]]:
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    model = Model()
    accelerator = Accelerator(
        cpu=True,
        gradient_accumulation_steps=scenario.accumulation,
        dataloader_config=DataLoaderConfiguration(split_batches=scenario.split),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = total_steps(scenario)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    wrapped, optimizer, data = accelerator.prepare(model, optimizer, loader(scenario))
    ends, rates = [], []
    for _ in range(scenario.epochs):
        for batch in data:
            if not scenario.uses_accumulate:
                accelerator.backward(wrapped(**batch)["loss"])
                optimizer.step()
                optimizer.zero_grad()
                continue
            with accelerator.accumulate(wrapped):
                accelerator.backward(wrapped(**batch)["loss"])
                if accelerator.sync_gradients:
                    rates.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                if accelerator.sync_gradients:
                    schedule.step()
                optimizer.zero_grad()
        ends.append(len(model.sizes))
    return model, ends, rates


def run_hf(scenario: Scenario, rig: ResizeRig) -> tuple[Model, list[int], list[float]]:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    model = Model()
    ends: list[int] = []
    rates: list[float] = []

    class Follow(TrainerCallback):  # type: ignore[misc]  # untyped here
        """Notes rates and ends."""

        def on_pre_optimizer_step(self, *args: Any, optimizer: Any, **_: Any) -> None:
            rates.append(optimizer.param_groups[0]["lr"])

        def on_epoch_end(self, *args: Any, **_: Any) -> None:
            ends.append(len(model.sizes))

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
            dataloader_num_workers=scenario.workers,
            dataloader_drop_last=scenario.drop_last,
            per_device_train_batch_size=scenario.size,
            gradient_accumulation_steps=scenario.accumulation,
            num_train_epochs=scenario.epochs,
            learning_rate=0.1,
            optim="sgd",
            save_strategy="no",
            ddp_backend="gloo" if WORLD > 1 else None,
            logging_strategy="no",
        )
        trainer = Trainer(
            model=model, args=arguments, train_dataset=Data(scenario.samples), callbacks=[Follow()]
        )
        trainer.train()
    return model, ends, rates


def run_lightning(scenario: Scenario, rig: ResizeRig) -> tuple[Model, list[int], list[float]]:
    import logging

    import lightning.pytorch as lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    model = Model()
    ends: list[int] = []
    rates: list[float] = []

    class Module(lightning.LightningModule):  # type: ignore[misc]  # untyped here
        """The model."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.model(**batch)["loss"]

        def on_before_optimizer_step(self, optimizer: Any) -> None:
            rates.append(optimizer.param_groups[0]["lr"])

        def on_train_epoch_end(self) -> None:
            ends.append(len(model.sizes))

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            steps = int(self.trainer.estimated_stepping_batches)
            schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
            return [optimizer], [{"scheduler": schedule, "interval": "step"}]

    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            max_epochs=scenario.epochs,
            accumulate_grad_batches=scenario.accumulation,
            devices=WORLD,
            strategy="ddp" if WORLD > 1 else "auto",
        )
        trainer.fit(Module(), loader(scenario))
    return model, ends, rates


RUNS = {
    "plain": run_plain,
    "accelerate": run_accelerate,
    "hf": run_hf,
    "lightning": run_lightning,
}


def told(framework: str, scenario: Scenario) -> Told:
    forget_declared()
    rig = ResizeRig()
    try:
        for step, params in scenario.changes:
            rig.at(step, params.get("name", "set_batch_size"), **_without_name(params))
        model, ends, rates = RUNS[framework](scenario, rig)
        numbers, sizes = in_epochs(model, ends)
        names = ("step.batch_samples", "step.batch_count", "step.batch_size")
        rows = [[row[name] for name in names] for row in rig.rows()]
        receipts = [msgspec.to_builtins(receipt) for receipt in rig.receipts]
        return Told(numbers, sizes, rig.tracker.step, rates, receipts, rows)
    finally:
        rig.close()


def _without_name(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "name"}


def main() -> None:
    torch.set_num_threads(1)
    folder, framework = Path(sys.argv[1]), sys.argv[2]
    rank = os.environ.get("RANK", "0")
    for text in sys.argv[3:]:
        torch.manual_seed(0)
        answer = told(framework, msgspec.json.decode(text, type=Scenario))
        with (folder / rank).open("a") as file:
            file.write(json.dumps(msgspec.to_builtins(answer)) + "\n")
    with suppress(Exception):
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

"""Accumulation in the Trainer of Lightning, found on the stack of training.

It reads ``accumulate_grad_batches`` anew for each batch, and counts the batches of an epoch once
for all: these counts are changed with it, for the epoch that runs and once more for later ones.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from vramscope.batching.accumulation import Batches, Change, conflict
from vramscope.batching.running_frames import variables
from vramscope.batching.windows import FromTheFirst
from vramscope.guard import guarded

_MODULES: Final = (
    "lightning.pytorch.loops.training_epoch_loop",
    "pytorch_lightning.loops.training_epoch_loop",
)
_EXPECTS: Final = "_vramscope_expects"


class LightningTrainer(FromTheFirst):
    """The Trainer that trains now. Implements ``Accumulation``.

    Args:
        trainer: the Trainer.
        package: Lightning's own, of which the trainer is.
    """

    name = "the Trainer of Lightning"

    def __init__(self, trainer: Any, package: str) -> None:
        self._trainer = trainer
        self._package = package

    @property
    def value(self) -> int:
        """Batches of one optimizer step now."""
        return int(self._trainer.accumulate_grad_batches)

    @property
    def ahead(self) -> int:
        """Batches that its fetcher holds back to know which is the last."""
        return len(getattr(self._trainer.fit_loop._data_fetcher, "batches", ()))

    def check(self, change: Change) -> None:
        """Whether its counts can be changed.

        Raises:
            VramscopeError: ``conflict``, they cannot, with the reason.
        """
        trainer = self._trainer
        loop = trainer.fit_loop
        if (
            not trainer.lightning_module.automatic_optimization
            and change.accumulation != self.value
        ):
            raise conflict(
                "this LightningModule optimizes by hand: only it knows how it accumulates"
            )
        if trainer.limit_train_batches != 1.0 or trainer.overfit_batches:
            raise conflict("limit_train_batches and overfit_batches count batches of the old size")
        if len(loop._combined_loader.flattened) != 1:
            raise conflict("Lightning combines several loaders: their sizes cannot be told apart")
        if getattr(trainer.strategy, "handles_gradient_accumulation", False):
            raise conflict("this strategy has an accumulation of its own, fixed at start")
        counts = (change.batches.running, change.batches.later)
        if loop.max_batches != float("inf") and None in counts:
            raise conflict("nobody knows how many batches an epoch would have")
        for callback in trainer.callbacks:
            if type(callback).__name__ == "GradientAccumulationScheduler":
                raise conflict("a GradientAccumulationScheduler sets accumulation at each epoch")

    def set(self, change: Change) -> None:
        """Accumulate so from the next batch on, and expect as many batches as there will be."""
        self._trainer.accumulate_grad_batches = change.accumulation
        batches = change.batches
        if batches.running is None or self._trainer.fit_loop.max_batches == float("inf"):
            return
        self._expect(batches.running)
        self._expect_later(batches)

    def _expect(self, count: int) -> None:
        self._count(count)
        loop = self._trainer.fit_loop
        fetcher = loop._data_fetcher
        fetcher.length = count
        fetcher.done = fetcher.fetched >= count
        loop.epoch_loop.batch_progress.is_last_batch = fetcher.done

    def _expect_later(self, batches: Batches) -> None:
        trainer = self._trainer
        # What an earlier change of the same epoch expected of the next one is over.
        trainer.callbacks = [each for each in trainer.callbacks if not hasattr(each, _EXPECTS)]
        later = batches.later
        if later is None or later == batches.running:
            return
        base: Any = importlib.import_module(f"{self._package}.callbacks").Callback
        loop, count, wanted = self._trainer.fit_loop, self._count, int(later)

        class NextEpoch(base):  # type: ignore[misc]  # Lightning is untyped here
            """Has the next epoch expect its batches, before its fetcher begins."""

            def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
                with guarded("batch size"):
                    trainer.callbacks = [each for each in trainer.callbacks if each is not self]
                    if loop.max_batches == batches.running:
                        count(wanted)

        expecting = NextEpoch()
        setattr(expecting, _EXPECTS, wanted)
        trainer.callbacks = [*trainer.callbacks, expecting]

    def _count(self, count: int) -> None:
        trainer = self._trainer
        loop = trainer.fit_loop
        if trainer.val_check_batch == loop.max_batches:
            trainer.val_check_batch = count
        elif isinstance(trainer.val_check_interval, float):
            trainer.val_check_batch = max(1, int(count * trainer.val_check_interval))
        loop.max_batches = count
        # A list of its own: that of the iterator which runs is left alone.
        loop._combined_loader.limits = [count]


def lightning_trainer() -> LightningTrainer | None:
    """The Trainer that the calling thread trains with, if it does."""
    for module in _MODULES:
        found = variables(module, ("advance",))
        trainer = None if found is None else getattr(found.get("self"), "trainer", None)
        if trainer is not None:
            return LightningTrainer(trainer, module.removesuffix(".loops.training_epoch_loop"))
    return None

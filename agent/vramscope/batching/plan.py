"""What a change of sizes means for the job at this moment, before anything is touched."""

from __future__ import annotations

from typing import Any

from vramscope.batching.accelerator import accelerator_loop
from vramscope.batching.accumulation import (
    Accumulation,
    Batches,
    Change,
    FixedAccumulation,
    conflict,
)
from vramscope.batching.declared_batch_size import (
    AccumulationOf,
    BatchSize,
    declared_batch_size,
)
from vramscope.batching.hf_trainer import hf_trainer
from vramscope.batching.lightning_trainer import lightning_trainer
from vramscope.batching.loader_in_use import LoaderInUse, loader_in_use, world_size
from vramscope.batching.loader_watch import LoaderWatch
from vramscope.batching.sizes import Sizes


class Plan:
    """From which batch on the sizes are others, and how many there are then.

    Args:
        loaders: which loaders training reads from.

    Raises:
        VramscopeError: ``conflict``, nothing can be changed, with the reason.
    """

    def __init__(self, loaders: LoaderWatch) -> None:
        self.declared: BatchSize | None = declared_batch_size()
        self.loader: LoaderInUse | None = None
        if self.declared is not None:
            self.declared.check_size()
        if self.declared is None or self.declared.call is None:
            target = None if self.declared is None else self.declared.index_sampler
            self.loader = loader_in_use(loaders.training, target)
        self.accumulation = self._accumulation(loaders)
        loader = self.loader
        size = loader.samplers.batch_size if loader is not None else self._declared_size()
        self.now = Sizes(size, self.accumulation.value, world_size())
        self.at = 0
        """The batch of the epoch that runs from which on the change is made."""
        self.is_at_end = False
        """Whether that is where the epoch ends."""
        self.change: Change | None = None

    @property
    def trained(self) -> int:
        """Batches of the epoch that training is through with."""
        loader = self.loader
        return 0 if loader is None else loader.trained - self.accumulation.ahead

    def check(self, wanted: Sizes) -> Change:
        """What will be changed, if it may be.

        Raises:
            VramscopeError: ``conflict``, it may not, with the reason.
        """
        loader = self.loader
        batches = Batches(0, None, None) if loader is None else self._batches(loader, wanted)
        change = Change(wanted.batch_size, wanted.accumulation, batches)
        self.accumulation.check(change)
        if loader is not None and loader.is_running:
            loader.samplers.continuation(loader.source())
        self.change = change
        return change

    def shown(self) -> dict[str, Any]:
        """What has to be the same on all ranks, by name."""
        change = self.change
        batches = None if change is None else change.batches
        return {
            "sizes": self.now.told(),
            "the batch of the change": self.at,
            "batches drawn": 0 if self.loader is None else self.loader.drawn,
            "batches of the epoch": None if batches is None else [batches.running, batches.later],
        }

    def effect(self) -> str:
        """When it takes effect, in words."""
        loader = self.loader
        if loader is None:
            return "The loop is told the new sizes."
        if not loader.is_running or self.is_at_end:
            return "It takes effect with the next epoch."
        ahead = self.at - self.trained
        if ahead == 0:
            return "It takes effect with the next batch."
        return f"It takes effect with the batch after the next {ahead}."

    def epoch(self, wanted: Sizes) -> str:
        """What becomes of the samples of the epoch, in words."""
        loader = self.loader
        samples = None if loader is None else loader.samplers.samples
        if loader is None or samples is None:
            return "Nobody knows how many samples an epoch has."
        if not loader.samplers.drop_last:
            return self._steps_of_an_epoch(loader, samples, wanted, "Every sample is seen.")
        ranks = loader.samplers.processes
        before = samples % (self.now.batch_size * ranks)
        taken = loader.samples_at(self.at) if loader.is_running and not self.is_at_end else 0
        after = (samples - taken * ranks) % (wanted.batch_size * ranks)
        text = f"drop_last leaves out {after} samples of the epoch; it would have been {before}."
        return self._steps_of_an_epoch(loader, samples, wanted, text)

    def _steps_of_an_epoch(
        self, loader: LoaderInUse, samples: int, wanted: Sizes, text: str
    ) -> str:
        now, then = (
            -(-loader.samplers.batches(samples, each.batch_size) // each.accumulation)
            for each in (self.now, wanted)
        )
        if now == then:
            return f"{text} An epoch keeps its {now} steps."
        return f"{text} An epoch has {then} steps instead of {now}: mind the learning rate."

    def _batches(self, loader: LoaderInUse, wanted: Sizes) -> Batches:
        samplers = loader.samplers
        if not samplers.is_equal_on(self.now.ranks):
            raise conflict(
                f"it is not certain that all {self.now.ranks} ranks would draw equally many "
                "batches: their samples come from no sampler that divides them evenly"
            )
        if loader.is_dispatched and self.now.ranks > 1:
            raise conflict("accelerate reads for all ranks on rank 0 (dispatch_batches)")
        samples, now, ranks = samplers.samples, self.now, samplers.processes
        later = None if samples is None else samplers.batches(samples, wanted.batch_size)
        if later == 0:
            raise conflict(f"an epoch of {samples} samples has no batch of {wanted.batch_size}")
        if not loader.is_running:
            self.at = 0
            return Batches(0, later, later)

        def count(at: int) -> int | None:
            if samples is None:
                return None
            rest = samples - loader.samples_at(at) * ranks
            return at + samplers.batches(max(0, rest), wanted.batch_size)

        drawn = loader.drawn
        self.at = self.accumulation.first_batch(drawn, now.accumulation, wanted.accumulation, count)
        if samples is None:
            return Batches(self.at, None, None)
        rest = samples - loader.samples_at(drawn) * ranks
        total = drawn + max(0, samplers.batches(rest, now.batch_size))
        if self.at >= total:
            self.at, self.is_at_end = total, True
            return Batches(total, total, later)
        return Batches(self.at, count(self.at), later)

    def _accumulation(self, loaders: LoaderWatch) -> Accumulation:
        trained = 0 if self.loader is None else self.loader.trained
        found: Accumulation | None = hf_trainer(trained) or lightning_trainer()
        if found is not None:
            return found
        if self.declared is not None:
            return AccumulationOf(self.declared)
        loader: Any = self.loader
        return accelerator_loop(loader.trained) or FixedAccumulation(max(1, loaders.batch_count))

    def _declared_size(self) -> int:
        return 0 if self.declared is None else self.declared.value

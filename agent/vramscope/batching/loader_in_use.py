"""The one loader that training reads from, and how far it is. Training thread, at a step's end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from vramscope.batching.accumulation import conflict
from vramscope.batching.index_samplers import WHAT_TO_DO, IndexSamplers
from vramscope.batching.loader_watch import LoaderPass
from vramscope.batching.redraw import Redraw, drawn, installed


class LoaderInUse:
    """A loader and its epoch that runs.

    Args:
        seen: the pass over it that was seen last; ``None`` before the first.
        index_sampler: what it draws from.

    Raises:
        VramscopeError: ``conflict``, its size cannot be changed, with the reason.
    """

    def __init__(self, seen: LoaderPass | None, index_sampler: Any) -> None:
        self._seen = seen
        self.iterator: Any = None if seen is None or seen.is_over else seen.iterator
        self.outermost = index_sampler
        """What the loader draws from."""
        self.samplers = IndexSamplers(index_sampler)
        self.is_dispatched = seen is not None and seen.reader == "_fetch_batches"
        """Whether one rank reads for all."""
        dataset = getattr(self.iterator, "_dataset", None)
        if type(dataset).__name__ == "IterableDatasetShard":
            raise conflict("accelerate has fixed what each rank takes of an IterableDataset")

    @property
    def is_running(self) -> bool:
        """Whether an epoch runs, and there may be more batches of it."""
        return self.iterator is not None

    @property
    def trained(self) -> int:
        """Batches of the epoch that were trained on, as far as the loader knows."""
        if self.iterator is None:
            return 0
        is_ahead = self._seen is not None and self._seen.reader != "" and not self._seen.is_over
        return int(self.iterator._num_yielded) - int(is_ahead)

    @property
    def drawn(self) -> int:
        """Batches of the epoch whose samples are chosen."""
        return 0 if self.iterator is None else drawn(self.iterator)

    @property
    def prefetched(self) -> int:
        """Batches that are on their way to training."""
        return self.drawn - self.trained

    def samples_at(self, batches: int) -> int:
        """Samples that this rank has taken of the epoch after so many batches of its size now."""
        size = self.samplers.batch_size
        source = getattr(self.iterator, "_sampler_iter", None)
        if isinstance(source, Redraw):
            return source.samples + (batches - source.batches) * size
        return (batches + self.samplers.skipped) * size

    def source(self) -> Any:
        """The iterator of batches of indices, of PyTorch or accelerate."""
        source = getattr(self.iterator, "_sampler_iter", None)
        return source.source if isinstance(source, Redraw) else source

    def redraw(self) -> Redraw:
        """Put one before the iterator of indices."""
        return installed(self.iterator, self.samplers.batch_size, self.samplers.skipped)


def loader_in_use(training: Sequence[LoaderPass], target: Any = None) -> LoaderInUse:
    """The loader that the steps read from.

    Args:
        training: passes that gave the last step its batches.
        target: the index sampler that it is, if the job has told.

    Raises:
        VramscopeError: ``conflict``, there is none, or none that can be told.
    """
    if target is not None:
        seen = [each for each in training if each.index_sampler is target]
        return LoaderInUse(seen[-1] if seen else None, target)
    # One that is over may have given the step its last batches, and another one goes on.
    samplers = {
        id(each.index_sampler): each.index_sampler
        for each in training
        if each.index_sampler is not None
    }
    if not samplers:
        raise conflict(f"no DataLoader is known that this job trains from: {WHAT_TO_DO}")
    if len(samplers) > 1:
        text = (
            f"each step reads from {len(samplers)} loaders: {WHAT_TO_DO}, for the one that is meant"
        )
        raise conflict(text)
    seen = [each for each in training if each.index_sampler is not None]
    seen.sort(key=lambda each: not each.is_over)
    return LoaderInUse(seen[-1], seen[-1].index_sampler)


def world_size() -> int:
    """Ranks of the job's process group; 1 without one."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())

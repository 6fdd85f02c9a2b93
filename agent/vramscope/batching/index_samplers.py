"""What draws the indices of a loader: which sizes it has, and how an epoch that runs is re-batched.

PyTorch's ``BatchSampler`` reads its size anew for each batch, except with ``drop_last`` from 2.6
on. accelerate puts a ``BatchSamplerShard`` over it, which gives out batches only of the size that
it has itself: both have to change, or the rest of an epoch is skipped without a word.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator
from itertools import islice
from types import GeneratorType
from typing import Any, Final

from vramscope_protocol.errors import CONFLICT, VramscopeError

WHAT_TO_DO: Final = "tell what to change with vramscope.batch_size(...)"
_SAMPLER_MODULE: Final = "torch.utils.data.sampler"
_MAX_LEVELS: Final = 4
_MAX_LOOKS: Final = 64


class IndexSamplers:
    """A ``BatchSampler`` and what accelerate has put over it.

    Args:
        outermost: what the loader draws from.

    Raises:
        VramscopeError: ``conflict``, its size cannot be changed, with the reason.
    """

    def __init__(self, outermost: Any) -> None:
        self.shard: Any = None
        self.skipped = 0
        """Batches of the outermost that a resumed epoch leaves out."""
        each = outermost
        for _ in range(_MAX_LEVELS):
            if _is_plain(each):
                break
            name = _accelerate_name(each)
            if name == "BatchSamplerShard":
                self.shard = each
            elif name == "SkipBatchSampler":
                self.skipped = int(each.skip_batches)
            else:
                break
            each = each.batch_sampler
        if not _is_plain(each):
            raise VramscopeError(CONFLICT, _why_not(each))
        self.innermost: Any = each

    @property
    def processes(self) -> int:
        """Ranks that share the indices of the innermost."""
        return int(self.shard.num_processes) if self.shard is not None else 1

    @property
    def batch_size(self) -> int:
        """Samples that one rank takes at a time."""
        size = int(self.innermost.batch_size)
        return size // self.processes if self._is_split else size

    @property
    def drop_last(self) -> bool:
        """Whether the samples that fill no batch are left out."""
        return bool(self.innermost.drop_last)

    @property
    def samples(self) -> int | None:
        """Of an epoch, for the ranks that share them; ``None`` if that is not known."""
        try:
            return len(self.innermost.sampler)
        except TypeError:
            return None

    def is_equal_on(self, ranks: int) -> bool:
        """Whether each of so many ranks draws as many batches as the others."""
        if ranks == 1:
            return True
        replicas = self.processes
        if self.shard is None:
            replicas = getattr(self.innermost.sampler, "num_replicas", 1)
        even = self.shard is None or self.drop_last or bool(self.shard.even_batches)
        return replicas == ranks and even

    def batches(self, samples: int, batch_size: int) -> int:
        """Batches that each rank makes of so many samples for all of them."""
        group = batch_size * self.processes
        return samples // group if self.drop_last else -(-samples // group)

    def set(self, batch_size: int) -> None:
        """What is drawn next has this size, where it is read anew."""
        whole = batch_size * self.processes if self._is_split else batch_size
        self.innermost.batch_size = whole
        if self.shard is not None:
            self.shard.batch_size = whole

    def continuation(self, source: Any) -> Iterator[list[int]] | None:
        """What goes on where an iterator stops that has fixed its size; ``None`` if it has not.

        Nothing is taken from the iterator until the first index is asked for.

        Raises:
            VramscopeError: ``conflict``, nobody knows how far the iterator is.
        """
        if not isinstance(source, GeneratorType) or source.gi_frame is None:
            return None  # at its end
        if source.gi_code.co_filename == __file__:
            return None  # ours already: it reads its size anew
        inner = _inner_generator(source)
        if inner is not None and inspect.getgeneratorstate(inner) == inspect.GEN_CREATED:
            return None  # not begun: it has yet to read its size
        is_fixed = self.drop_last and _fixes_size_when_dropping()
        if not is_fixed and not self._is_split:
            return None
        indices = None
        if inner is not None and inner.gi_frame is not None:
            indices = inner.gi_frame.f_locals.get("sampler_iter")
        if indices is None:
            text = "the sampler of the epoch that runs cannot be reached; try it with the next one"
            raise VramscopeError(CONFLICT, text)
        if self.shard is None:
            return self._go_on(indices)
        if not self._is_split:
            return self._go_on_in_groups(indices)
        first = source.gi_frame.f_locals.get("initial_data", [])
        return self._go_on_split(indices, list(first))

    @property
    def _is_split(self) -> bool:
        return self.shard is not None and bool(self.shard.split_batches)

    def _go_on(self, indices: Iterator[int]) -> Iterator[list[int]]:
        while True:
            size = self.innermost.batch_size
            batch = list(islice(indices, size))
            if len(batch) < size:
                return
            yield batch

    def _go_on_in_groups(self, indices: Iterator[int]) -> Iterator[list[int]]:
        while True:
            size, ranks = self.innermost.batch_size, self.processes
            group = list(islice(indices, size * ranks))
            if len(group) < size * ranks:
                return
            begin = size * self.shard.process_index
            yield group[begin : begin + size]

    def _go_on_split(self, indices: Iterator[int], first: list[int]) -> Iterator[list[int]]:
        while True:
            whole = self.innermost.batch_size
            part = whole // self.processes
            batch = list(islice(indices, whole))
            begin = part * self.shard.process_index
            if len(batch) == whole:
                yield batch[begin : begin + part]
                continue
            if batch and not self.drop_last:
                if self.shard.even_batches:
                    while first and len(batch) < whole:
                        batch += first
                if len(batch) > begin:
                    yield batch[begin : begin + part]
            return


def _is_plain(sampler: Any) -> bool:
    batch_sampler = _batch_sampler_class()
    kind: Any = sampler.__class__
    if batch_sampler is None or batch_sampler not in kind.__mro__:
        return False
    return bool(kind.__iter__ is batch_sampler.__iter__)


def _batch_sampler_class() -> Any:
    return getattr(sys.modules.get(_SAMPLER_MODULE), "BatchSampler", None)


def _accelerate_name(sampler: Any) -> str:
    kind: Any = sampler.__class__
    return str(kind.__name__) if kind.__module__ == "accelerate.data_loader" else ""


def _why_not(sampler: Any) -> str:
    kind = type(sampler).__name__
    if sampler is None or not hasattr(sampler, "batch_size"):
        return f"the loader draws from a {kind}, which has no batch size: {WHAT_TO_DO}"
    return f"the loader draws from a {kind}, and nobody knows when it reads its size: {WHAT_TO_DO}"


def _fixes_size_when_dropping() -> bool:
    return "zip" in _batch_sampler_class().__iter__.__code__.co_names


def _inner_generator(source: Any) -> Any:
    """The generator of the ``BatchSampler`` itself, wherever in the one over it."""
    code = _batch_sampler_class().__iter__.__code__
    looks: list[Any] = [source]
    for number in range(_MAX_LOOKS):
        if number >= len(looks):
            return None
        each = looks[number]
        if getattr(each, "gi_code", None) is code:
            return each
        # One of accelerate holds it on its stack, within an ``enumerate``.
        if type(each) in (GeneratorType, enumerate):
            looks += gc.get_referents(each)
    return None

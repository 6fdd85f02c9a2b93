"""What ``vramscope.batch_size`` returns: the sizes of a loop that nobody else could change."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

from vramscope.batching.accumulation import Change, conflict
from vramscope.batching.windows import FromTheFirst
from vramscope.guard import guarded

_ATTRIBUTES: Final = (
    "gradient_accumulation_steps",
    "accumulate_grad_batches",
    "num_steps",
    "value",
)
_MAX: Final = 16


class BatchSize:
    """The batch size and the accumulation that a loop has to use, changed at the end of a step.

    Args:
        target: a ``DataLoader``, a ``BatchSampler``, or a function that takes the new size.
        accumulation: batches of one step, an object with such an attribute, or a function that
            takes the new number.
        size: the present size, where ``target`` is a function.
        steps: the present accumulation, where ``accumulation`` is a function.
    """

    def __init__(
        self,
        target: Any,
        accumulation: Any = None,
        size: int | None = None,
        steps: int | None = None,
    ) -> None:
        sampler = getattr(target, "batch_sampler", None) if _is_loader(target) else target
        self.call: Callable[[int], object] | None = None
        """What takes the new size, where it is no loader."""
        self._sampler: Callable[[], Any] = lambda: None
        if hasattr(sampler, "batch_size") and not _is_function(sampler):
            with guarded("batch_size"):
                self._sampler = weakref.ref(sampler)
        elif callable(target):
            self.call = target
        self._size = size
        self._accumulation = accumulation
        self._steps = accumulation if isinstance(accumulation, int) else steps

    @property
    def index_sampler(self) -> Any:
        """The ``BatchSampler``, as long as the job has it."""
        return self._sampler()

    @property
    def value(self) -> int:
        """Samples of the next batch."""
        sampler = self._sampler()
        return int(self._size or 0) if sampler is None else int(sampler.batch_size)

    @property
    def accumulation(self) -> int:
        """Batches of one optimizer step now; 1 if nobody has told."""
        name = self._attribute()
        return int(self._steps or 1) if name is None else int(getattr(self._accumulation, name))

    def check_size(self) -> None:
        """Whether there is something to change.

        Raises:
            VramscopeError: ``conflict``, there is not.
        """
        if self.call is not None and not self._size:
            raise conflict("vramscope.batch_size(function) has to be told the present size")
        if self.call is None and self._sampler() is None:
            raise conflict("what vramscope.batch_size was told of is gone, or has no batch size")

    def check(self, change: Change) -> None:
        """Whether the loop can be told of another accumulation.

        Raises:
            VramscopeError: ``conflict``, it cannot.
        """
        is_told = self._attribute() is not None or self._steps is not None
        if change.accumulation != self.accumulation and not is_told:
            text = "vramscope.batch_size was not told how this loop accumulates: give accumulation"
            raise conflict(text)

    def set(self, change: Change) -> None:
        """Have the loop accumulate so from its next batch on."""
        name = self._attribute()
        if name is not None:
            setattr(self._accumulation, name, change.accumulation)
        elif self._steps is not None:
            self._steps = change.accumulation
            if callable(self._accumulation):
                self._accumulation(change.accumulation)

    def set_size(self, batch_size: int) -> None:
        """Call the function; what it raises is the command's failure."""
        if self.call is not None:
            self.call(batch_size)
            self._size = batch_size

    def is_same(self, other: BatchSize) -> bool:
        """Whether both are about the same thing."""
        if self.call is not None or other.call is not None:
            return self.call == other.call
        return self._sampler() is other._sampler()

    def _attribute(self) -> str | None:
        given = self._accumulation
        if given is None or isinstance(given, int):
            return None
        return next((name for name in _ATTRIBUTES if hasattr(given, name)), None)


class AccumulationOf(FromTheFirst):
    """The accumulation of a declared batch size. Implements ``Accumulation``."""

    name = "the training loop"
    ahead = 0

    def __init__(self, declared: BatchSize) -> None:
        self._declared = declared
        self.check = declared.check
        self.set = declared.set

    @property
    def value(self) -> int:
        """Batches of one optimizer step now."""
        return self._declared.accumulation


_declared: list[BatchSize] = []


def declare(declared: BatchSize) -> None:
    """Remember it; one about the same thing replaces the one before."""
    with guarded("batch_size"):
        _declared[:] = [
            each
            for each in _declared
            if not each.is_same(declared) and (each.call or each.index_sampler is not None)
        ][-_MAX + 1 :]
        _declared.append(declared)


def declared_batch_size() -> BatchSize | None:
    """The one that the job has declared, if any.

    Raises:
        VramscopeError: ``conflict``, there are several.
    """
    alive = [each for each in _declared if each.call or each.index_sampler is not None]
    if len(alive) > 1:
        raise conflict(f"vramscope.batch_size was called for {len(alive)} different things")
    return alive[0] if alive else None


def forget_declared() -> None:
    """Forget them all: for tests."""
    _declared.clear()


def _is_loader(target: Any) -> bool:
    return hasattr(target, "batch_sampler") and hasattr(target, "dataset")


def _is_function(target: Any) -> bool:
    return callable(target) and not hasattr(target, "__iter__")

"""Optimizers that step the job's parameters now, and the tensors that they work with."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from vramscope.holders.classes import PLAIN_DICT, class_of
from vramscope.tensors.census import parameters_of

IDLE_STEPS: Final = 50
"""An optimizer that has not stepped for so long is in use no more."""
_MAX_KNOWN: Final = 1_000


class OptimizersInUse:
    """Notes who steps, without keeping it alive.

    Args:
        current_step: steps finished so far.
    """

    def __init__(self, current_step: Callable[[], int]) -> None:
        self._current_step = current_step
        # By id: an optimizer may refuse to be hashed.
        self._last_step: dict[int, tuple[weakref.ref[Any], int]] = {}

    def saw_optimizer(self, optimizer: Any) -> None:
        """An optimizer has stepped; on the training thread."""
        step = self._current_step()
        known = self._last_step.get(id(optimizer))
        if known is not None and known[0]() is optimizer:
            self._last_step[id(optimizer)] = (known[0], step)
            return
        if len(self._last_step) >= _MAX_KNOWN:
            self._last_step.clear()
        self._last_step[id(optimizer)] = (weakref.ref(optimizer), step)

    def in_use(self) -> list[Any]:
        """Those that have stepped lately. To be dropped soon."""
        since = self._current_step() - IDLE_STEPS
        # One that is gone leaves its entry until its id comes again: there are few.
        return [
            optimizer
            for reference, step in list(self._last_step.values())
            if step >= since and (optimizer := reference()) is not None
        ]


def tensors_in_use(optimizers: Iterable[Any]) -> tuple[set[int], set[int]]:
    """Ids of the parameters that are stepped, and of what is kept for each."""
    parameters: set[int] = set()
    states: set[int] = set()
    for optimizer in optimizers:
        parameters.update(map(id, parameters_of(optimizer)))
        for state in list(optimizer.state.values()):
            states.update(map(id, _values(state)))
    return parameters, states


def _values(state: Any) -> Iterator[Any]:
    if issubclass(class_of(state), dict):
        yield from list(PLAIN_DICT.values(state))
    else:
        yield state

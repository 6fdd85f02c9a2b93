"""Where one training step ends, told from the order in which optimizers step. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

_GIVE_UP_FACTOR: Final = 2


class OptimizerCycle:
    """Finds the last optimizer step of an iteration, for one optimizer or several (GAN).

    Several optimizers make one iteration. Its end is the step of the one that joined last: for
    ``D D D G`` that is G. The first iteration is only understood once it is over, so there each
    step of D counts; G, when it first appears, extends that iteration instead of ending a new
    one. When the last one stays away for two whole cycles the order is learned anew.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, None] = {}
        self._last: Hashable = None
        self._calls = 0
        self._cycle_calls = 1

    def ends_step(self, optimizer: Hashable) -> bool:
        """Take one optimizer step in order; whether it ends an iteration."""
        self._calls += 1
        if optimizer == self._last:
            self._cycle_calls = self._calls
            self._calls = 0
            return True
        if optimizer not in self._known:
            is_first = not self._known
            self._known[optimizer] = None
            self._last = optimizer
            self._calls = 0
            self._cycle_calls = len(self._known)
            return is_first
        if self._calls > _GIVE_UP_FACTOR * self._cycle_calls:
            self._known = {optimizer: None}
            self._last = optimizer
            self._calls = 0
            self._cycle_calls = 1
            return True
        return False


class BackwardOptimizers:
    """Optimizer steps that run inside the backward pass, one per parameter.

    They are debounced into one step. It ends at the next moment that is outside of the backward
    pass and known: a batch being fetched, an explicit ``step()``, or, for want of those, when the
    first optimizer comes round again.
    """

    def __init__(self) -> None:
        self._first: Hashable = None
        self._stepped = False

    def is_pending(self) -> bool:
        """Whether some stepped since the last end of a step."""
        return self._stepped

    def comes_round(self, optimizer: Hashable) -> bool:
        """Take one step inside the backward pass; whether it begins the next iteration."""
        again = self._stepped and optimizer == self._first
        if not self._stepped:
            self._first = optimizer
        self._stepped = True
        return again

    def ended(self) -> None:
        """The step has ended elsewhere."""
        self._stepped = False

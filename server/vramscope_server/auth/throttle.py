"""Token buckets by caller: how often one caller may do a thing."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from vramscope_protocol.errors import RATE_LIMITED, VramscopeError


class RateLimited(VramscopeError):
    """The caller has to wait ``wait_s`` seconds."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(RATE_LIMITED, message)
        self.wait_s = wait_s


class Throttle:
    """Allows ``burst`` uses at once and ``per_s`` uses a second after that, for each caller.

    Callers are remembered up to a bound; the one that was idle longest is forgotten first, which
    gives it a full bucket again.

    Args:
        what: the thing, for the error: "wrong tokens".
    """

    def __init__(
        self,
        what: str,
        burst: int,
        per_s: float,
        max_callers: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._burst = float(burst)
        self._per_s = per_s
        self._max_callers = max_callers
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, caller: str) -> None:
        """Refuse a caller whose bucket is empty, without counting a use.

        Raises:
            RateLimited: with the time to wait.
        """
        level = self._level(caller)
        if level < 1:
            wait_s = (1 - level) / self._per_s
            raise RateLimited(
                f"too many {self._what} from {caller}; expected a pause of {wait_s:.0f} s", wait_s
            )

    def use(self, caller: str) -> None:
        """Count one use."""
        self._buckets[caller] = (max(0.0, self._level(caller) - 1), self._clock())
        self._buckets.move_to_end(caller)
        while len(self._buckets) > self._max_callers:
            self._buckets.popitem(last=False)

    def _level(self, caller: str) -> float:
        bucket = self._buckets.get(caller)
        if bucket is None:
            return self._burst
        level, at_s = bucket
        return min(self._burst, level + (self._clock() - at_s) * self._per_s)

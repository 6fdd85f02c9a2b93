"""What autocast's copies of weights held when its region ended: nobody else had them any more.

Within a region autocast keeps a copy in the lower precision of each weight that was used, so that
it is not made twice. When the outermost region ends they are let go. What is free then was held by
nothing else: copies that a backward pass still needs stay with its graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from vramscope.devices.caching_allocator import Stats, current_bytes
from vramscope.steps.late_patch import LatePatch
from vramscope_protocol.columns import UNKNOWN

NAME: Final = "step.autocast_cache_bytes"
AMP_MODULE: Final = "torch.amp.autocast_mode"
"""Is imported with torch, after the function that lets the copies go."""
_FUNCTION: Final = "clear_autocast_cache"
EVERY_STEPS: Final = 8
MAX_REGIONS: Final = 2
"""Of each eighth step. Counters are asked before and after, 10 to 20 µs each time, and a job may
have a region for each layer."""


class AutocastCache(LatePatch):
    """Columns of a step row: the most that a region's end has freed. Implements ``StepColumns``.

    Args:
        memory_stats: counters of the device; None if it is not up.
        is_training_thread: whether the calling thread is the one that trains.
        add_cost_ns: told what it costs.
    """

    names = (NAME,)

    def __init__(
        self,
        memory_stats: Callable[[], Stats | None],
        is_training_thread: Callable[[], bool],
        add_cost_ns: Callable[[int], object],
    ) -> None:
        super().__init__(
            AMP_MODULE, _FUNCTION, self._region_ends, self._region_ended, "autocast", owner="torch"
        )
        self._memory_stats = memory_stats
        self._is_training_thread = is_training_thread
        self._add_cost_ns = add_cost_ns
        self._step = 0
        self._regions = 0
        self._before_bytes: int | None = None
        self._most = 0

    def take(self) -> Sequence[int]:
        """The most since the step before; unknown of steps in which nobody looked."""
        is_known = not self._step % EVERY_STEPS and self.is_installed
        most, self._most, self._regions = self._most, 0, 0
        self._step += 1
        return (most if is_known else UNKNOWN,)

    @property
    def _is_looked_at(self) -> bool:
        return self._step % EVERY_STEPS == 0

    def _allocated_bytes(self) -> int:
        return current_bytes(self._memory_stats(), "allocated_bytes")

    def _region_ends(self, first: Any) -> None:
        del first
        self._before_bytes = None
        is_wanted = self._is_looked_at and self._regions < MAX_REGIONS
        if is_wanted and self._is_training_thread():
            start_ns = time.perf_counter_ns()
            self._regions += 1
            self._before_bytes = self._allocated_bytes()
            self._add_cost_ns(time.perf_counter_ns() - start_ns)

    def _region_ended(self, first: Any, raised: BaseException | None) -> None:
        del first, raised
        if self._before_bytes is not None and self._is_training_thread():
            start_ns = time.perf_counter_ns()
            self._most = max(self._most, self._before_bytes - self._allocated_bytes())
            self._before_bytes = None
            self._add_cost_ns(time.perf_counter_ns() - start_ns)

"""What autocast's copies of weights held when its region ended: nobody else had them any more.

Within a region autocast keeps a copy in the lower precision of each weight that was used, so that
it is not made twice. When the outermost region ends they are let go. What is free then was held by
nothing else: copies that a backward pass still needs stay with its graph.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from vramscope.devices.caching_allocator import Stats, current_bytes
from vramscope.patch import Patch
from vramscope.steps.import_watcher import ImportWatcher
from vramscope_protocol.columns import UNKNOWN

NAME: Final = "step.autocast_cache_bytes"
AMP_MODULE: Final = "torch.amp.autocast_mode"
"""Is imported with torch, after the function that lets the copies go."""
_FUNCTION: Final = "clear_autocast_cache"
EVERY_STEPS: Final = 8
MAX_REGIONS: Final = 2
"""Of each eighth step. Counters are asked before and after, 10 to 20 µs each time, and a job may
have a region for each layer."""


class AutocastCache:
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
        self._memory_stats = memory_stats
        self._is_training_thread = is_training_thread
        self._add_cost_ns = add_cost_ns
        self._patch: Patch | None = None
        self._watcher = ImportWatcher(AMP_MODULE, self._hook)
        self._step = 0
        self._regions = 0
        self._before_bytes: int | None = None
        self._most = 0

    def install(self) -> None:
        """Follow the ends of regions, now or as soon as the job has imported torch."""
        self._watcher.install()

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        self._watcher.remove()
        if self._patch is not None:
            self._patch.remove()
            self._patch = None

    def forget_after_fork(self) -> None:
        """In a forked child: only pass on."""
        if self._patch is not None:
            self._patch.forget_after_fork()

    def take(self) -> Sequence[int]:
        """The most since the step before; unknown of steps in which nobody looked."""
        is_known = self._patch is not None and self._is_looked_at
        most, self._most, self._regions = self._most, 0, 0
        self._step += 1
        return (most if is_known else UNKNOWN,)

    @property
    def _is_looked_at(self) -> bool:
        return self._step % EVERY_STEPS == 0

    def _hook(self) -> None:
        torch: Any = sys.modules["torch"]
        if hasattr(torch, _FUNCTION):
            patch = Patch(torch, _FUNCTION, self._before, self._after, "autocast")
            patch.install()
            self._patch = patch

    def _allocated_bytes(self) -> int:
        return current_bytes(self._memory_stats(), "allocated_bytes")

    def _before(self, first: Any) -> None:
        del first
        self._before_bytes = None
        is_wanted = self._is_looked_at and self._regions < MAX_REGIONS
        if is_wanted and self._is_training_thread():
            start_ns = time.perf_counter_ns()
            self._regions += 1
            self._before_bytes = self._allocated_bytes()
            self._add_cost_ns(time.perf_counter_ns() - start_ns)

    def _after(self, first: Any, raised: BaseException | None) -> None:
        del first, raised
        if self._before_bytes is not None and self._is_training_thread():
            start_ns = time.perf_counter_ns()
            self._most = max(self._most, self._before_bytes - self._allocated_bytes())
            self._before_bytes = None
            self._add_cost_ns(time.perf_counter_ns() - start_ns)

"""What a recording takes of the host's memory, and the budget that it must stay within."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Final

from vramscope.history.pytorch_history import HistoryMode
from vramscope.size_text import size_text

ENTRY_BYTES: Final = 900
"""A trace entry: 136 bytes in PyTorch's ring, which doubles as it grows, and about 520 as a dict
in the snapshot and 100 in what is written of it."""
STACK_BYTES: Final = {"alloc": 700, "all": 1300}
"""More for each entry with stacks of 40 frames: as PyTorch keeps them, and as a list of the
snapshot. An allocation shares its stack with its frees, unless those have their own."""

_SHARE: Final = 0.5
"""Of the budget, by this estimate: the rest is for where it is wrong."""
_MIN_ENTRIES: Final = 1000


def entries_within(budget_bytes: int, mode: HistoryMode, *, stacks: bool) -> int:
    """How many entries the ring may have, recording and snapshot together."""
    if mode == "state":
        return 1
    each_bytes = ENTRY_BYTES + (STACK_BYTES[mode] if stacks else 0)
    return max(_MIN_ENTRIES, int(budget_bytes * _SHARE) // each_bytes)


def resident_bytes() -> int | None:
    """Resident memory of this process; ``None`` where the kernel does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return None


class HostMemoryBudget:
    """Watches how much the process has grown since the recording began.

    What the job itself takes meanwhile counts too: nobody can tell the two apart, and a recording
    is what can be done without.

    Args:
        budget_bytes: growth that is allowed.
        read: resident memory of the process.
    """

    def __init__(self, budget_bytes: int, read: Callable[[], int | None] = resident_bytes) -> None:
        self._budget_bytes = budget_bytes
        self._read = read
        self._start_bytes = read()

    def grown_bytes(self) -> int | None:
        """Growth since the start; ``None`` if it is not known."""
        now_bytes = self._read()
        if now_bytes is None or self._start_bytes is None:
            return None
        return now_bytes - self._start_bytes

    def excess(self) -> str | None:
        """Why the recording must end, in words; ``None`` while it may go on."""
        grown_bytes = self.grown_bytes()
        if grown_bytes is None or grown_bytes <= self._budget_bytes:
            return None
        return (
            f"the process grew by {size_text(grown_bytes)} of host memory, "
            f"more than the {size_text(self._budget_bytes)} allowed"
        )

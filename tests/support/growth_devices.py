"""A device on which something grows, with clocks that move only when told to."""

from __future__ import annotations

from typing import Any

from vramscope.growth.recording import STACK_NS, StackRecording

MIB = 1 << 20


class Clocks:
    """The clock on the wall, and the time that a thread has used."""

    def __init__(self) -> None:
        self.wall_ns = 0
        self.thread_ns = 0

    def perf_counter_ns(self) -> int:
        return self.wall_ns

    def thread_time_ns(self) -> int:
        return self.thread_ns

    def work(self, ms: float) -> None:
        """Use some time."""
        self.wait(ms)
        self.thread_ns += round(ms * 1e6)

    def wait(self, ms: float) -> None:
        """Let time go by."""
        self.wall_ns += round(ms * 1e6)


class GrowingDevice:
    """One line of a job allocates a block that stays, with every step."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self.blocks = 1
        self.looks = 0

    @property
    def allocations(self) -> int:
        return 1000 * self.blocks

    def memory_stats(self) -> Any:
        return {
            "allocated_bytes": {"all": {"current": 512 * self.blocks}},
            "allocation": {"all": {"allocated": self.allocations}},
        }

    def segments(self) -> Any:
        self._clocks.work(1.0)
        self.looks += 1
        frames = [{"filename": "train.py", "line": 7, "name": "main"}]
        blocks = [
            {"address": 512 * at, "size": 512, "state": "active_allocated", "frames": frames}
            for at in range(self.blocks)
        ]
        return [{"blocks": blocks}]

    def storage(self, tensor: Any) -> None:
        del tensor


class SideStreamDevice(GrowingDevice):
    """What a line allocates is used on another stream, and freed; nothing grows."""

    def memory_stats(self) -> Any:
        waiting_bytes = 24 * MIB * (self.blocks % 5)
        return {
            "allocated_bytes": {"all": {"current": 512}},
            "active_bytes": {"all": {"current": 512 + waiting_bytes}},
        }

    def segments(self) -> Any:
        self._clocks.work(1.0)
        self.looks += 1
        frames = [{"filename": "train.py", "line": 31, "name": "main"}]
        blocks = [
            {"address": at, "size": 24 * MIB, "state": "active_pending_free", "frames": frames}
            for at in range(self.blocks % 5)
        ]
        return [{"blocks": blocks, "stream": 0}]


class Recording(StackRecording):
    """Records nothing, and notes for how long it would have."""

    def __init__(self) -> None:
        self.note = ""
        self.is_begun = False
        self.stopped_at = 0
        self._recorded = 0

    @property
    def is_on(self) -> bool:
        return self.is_begun

    @property
    def why_ended(self) -> str:
        return ""

    def start(self, issued_by: str, allocations: int = 0) -> None:
        del issued_by
        self.is_begun, self._since_allocations = True, allocations

    def stop(self) -> None:
        self.is_begun = False

    def cost_ns(self, allocations: int) -> int:
        if self.is_begun:
            self._recorded = allocations - self._since_allocations
            self.stopped_at = self._recorded // 1000
        return STACK_NS * self._recorded

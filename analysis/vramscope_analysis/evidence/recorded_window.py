"""What the newest recorded window of a rank tells of its requests and of where pieces lie."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope_analysis.evidence.memory_layout import MemoryLayout
from vramscope_analysis.evidence.recorded_requests import RecordedRequests, recorded_requests
from vramscope_analysis.evidence.window_layout import window_layout
from vramscope_analysis.moments.recorded_memory import RecordedMemory


@dataclass(frozen=True)
class RecordedWindow:
    """A recording, as far as the judge of fragmentation asks for it.

    Args:
        layout: of the first moment at which most was reserved.
        requests: those of the window; None is none.
    """

    layout: MemoryLayout
    requests: RecordedRequests | None

    @classmethod
    def of(cls, memory: RecordedMemory) -> RecordedWindow:
        """What one device of a snapshot shows."""
        return cls(window_layout(memory), recorded_requests(memory))

"""What an allocator tells about itself."""

from __future__ import annotations

from typing import Any

from vramscope_analysis.allocator.cached_memory import CachedMemory
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.events import EventCallback, PoolId
from vramscope_analysis.allocator.pool import DEFAULT_POOL_ID
from vramscope_analysis.allocator.settings import AllocatorSettings
from vramscope_analysis.allocator.snapshot import segment_entries
from vramscope_analysis.allocator.state import AllocatorState


class Readings:
    """Counters, segments and limits of one device's allocator; the base of the model."""

    def __init__(self, state: AllocatorState, cached: CachedMemory) -> None:
        self._state = state
        self._cached = cached

    def memory_stats(self) -> dict[str, Any]:
        """Counters as ``torch._C._cuda_memoryStats`` returns them."""
        return self.counters.as_dict()

    def segments(self, pool_id: PoolId = DEFAULT_POOL_ID) -> list[dict[str, Any]]:
        """Segments with their blocks as ``torch.cuda.memory_snapshot()`` returns them.

        Args:
            pool_id: a private pool; (0, 0): all segments.
        """
        cached = self._cached
        segments = [*cached.device.segments.values(), *cached.expandable.segments.values()]
        if pool_id != DEFAULT_POOL_ID:
            segments = [segment for segment in segments if segment.pool.pool_id == pool_id]
        return segment_entries(segments)

    @property
    def counters(self) -> Counters:
        """Every counter."""
        return self._state.counters

    @property
    def settings(self) -> AllocatorSettings:
        """Options that hold now."""
        return self._state.settings

    @property
    def on_event(self) -> EventCallback | None:
        """Called for every entry that PyTorch would write to its trace."""
        return self._state.on_event

    @on_event.setter
    def on_event(self, callback: EventCallback | None) -> None:
        self._state.on_event = callback

    @property
    def reserved_bytes(self) -> int:
        """Bytes held from the device."""
        return self._state.reserved_bytes

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the blocks that are handed out."""
        return self.counters.all.allocated_bytes.current

    @property
    def capacity_bytes(self) -> int | None:
        """What the device has for this process; ``None``: it never runs out."""
        return self._state.capacity_bytes

    @property
    def limit_bytes(self) -> int | None:
        """The process's own cap (``allowed_memory_maximum``); ``None``: there is none."""
        return self._state.limit_bytes

    @property
    def allowed_bytes(self) -> int | None:
        """Most that may be held from the device: limit or capacity. ``None``: no end."""
        return self._state.allowed_bytes

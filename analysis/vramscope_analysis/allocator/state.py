"""What the parts of one allocator share."""

from __future__ import annotations

from vramscope_analysis.allocator.address_space import AddressSpace
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.events import EventCallback, PoolId
from vramscope_analysis.allocator.settings import AllocatorSettings


class AllocatorState:
    """Settings, limits, counters and the way out for events of one device's allocator."""

    __slots__ = (
        "addresses",
        "capacity_bytes",
        "counters",
        "limit_bytes",
        "on_event",
        "settings",
    )

    def __init__(
        self,
        settings: AllocatorSettings,
        *,
        capacity_bytes: int | None,
        limit_bytes: int | None,
        addresses: AddressSpace,
        on_event: EventCallback | None,
    ) -> None:
        self.settings = settings
        self.capacity_bytes = capacity_bytes
        self.limit_bytes = limit_bytes
        self.addresses = addresses
        self.on_event = on_event
        self.counters = Counters(settings.max_split_size_bytes)

    @property
    def reserved_bytes(self) -> int:
        """Bytes held from the device (``total_allocated_memory``)."""
        return self.counters.all.reserved_bytes.current

    @property
    def allowed_bytes(self) -> int | None:
        """Most that may be held: the limit or all that the device has. ``None``: no end."""
        capacity, limit = self.capacity_bytes, self.limit_bytes
        if capacity is None or limit is None:
            return capacity if limit is None else limit
        return min(limit, capacity)

    @property
    def counts_searches(self) -> bool:
        """Whether blocks age, for a threshold that is a part of the limit (``get_free_block``)."""
        return self.limit_bytes is not None and self.settings.garbage_collection_threshold > 0

    def within_limit(self, size_bytes: int) -> bool:
        """Whether the process may take that much more (``alloc_block``)."""
        limit = self.limit_bytes
        return limit is None or self.reserved_bytes + size_bytes <= limit

    def on_device(self, size_bytes: int) -> bool:
        """Whether the device has that much more (``cudaMalloc``, ``cuMemCreate``)."""
        capacity = self.capacity_bytes
        return capacity is None or self.reserved_bytes + size_bytes <= capacity

    def emit(
        self, action: str, address: int, size_bytes: int, stream: int, pool_id: PoolId
    ) -> None:
        """Report one trace entry (``record_trace``)."""
        if self.on_event is not None:
            self.on_event(action, address, size_bytes, stream, pool_id)

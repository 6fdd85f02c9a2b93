"""The error of a request that does not fit."""

from __future__ import annotations


class OutOfMemoryError(Exception):
    """The request does not fit, even after every free segment went back to the device.

    Args:
        requested_bytes: what the program asked for.
        segment_bytes: what the device was asked for.
        capacity_bytes: memory of the device.
        allowed_bytes: the limit of the process; the capacity if none was set.
        reserved_bytes: held from the device.
        allocated_bytes: of that, in blocks that are handed out.
        largest_free_bytes: the largest cached block of the request's pool and stream.
        stream: stream of the request.
        is_rejection: ``throw_on_cudamalloc_oom`` stopped the request before the device was asked:
            such an error is in no trace and not in ``num_ooms``.
    """

    def __init__(
        self,
        *,
        requested_bytes: int,
        segment_bytes: int,
        capacity_bytes: int,
        allowed_bytes: int,
        reserved_bytes: int,
        allocated_bytes: int,
        largest_free_bytes: int,
        stream: int,
        is_rejection: bool = False,
    ) -> None:
        super().__init__(
            f"expected {segment_bytes} free bytes for a request of {requested_bytes}, "
            f"got {allowed_bytes - reserved_bytes} of {allowed_bytes}"
        )
        self.requested_bytes = requested_bytes
        self.segment_bytes = segment_bytes
        self.capacity_bytes = capacity_bytes
        self.allowed_bytes = allowed_bytes
        self.reserved_bytes = reserved_bytes
        self.allocated_bytes = allocated_bytes
        self.largest_free_bytes = largest_free_bytes
        self.stream = stream
        self.is_rejection = is_rejection

    @property
    def free_bytes(self) -> int:
        """What the device had left (``device_free`` of a trace entry)."""
        return self.capacity_bytes - self.reserved_bytes

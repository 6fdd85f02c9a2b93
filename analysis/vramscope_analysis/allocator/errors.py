"""What the model raises."""

from __future__ import annotations


class OutOfMemoryError(Exception):
    """The request does not fit, even after every free segment went back to the device.

    ``allowed_bytes`` is the cap that bound (the capacity when none was set), ``free_bytes`` what
    the device had left (``device_free`` of the real error);
    ``largest_free_bytes`` is the largest cached block that the request could have used.
    ``is_rejection`` says that ``throw_on_cudamalloc_oom`` stopped the request before the device
    was asked: such an error is in no trace and not in ``num_ooms``.
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
        """What the device had left."""
        return self.capacity_bytes - self.reserved_bytes

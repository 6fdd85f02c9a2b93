from __future__ import annotations

from vramscope_analysis.allocator import OutOfMemoryError


def test_the_error_tells_the_limit_and_what_the_device_has_left() -> None:
    error = OutOfMemoryError(
        requested_bytes=100,
        segment_bytes=2000,
        capacity_bytes=9000,
        allowed_bytes=5000,
        reserved_bytes=4000,
        allocated_bytes=3500,
        largest_free_bytes=50,
        stream=1,
    )

    assert str(error) == "expected 2000 free bytes for a request of 100, got 1000 of 5000"
    assert error.free_bytes == 5000

"""How a requested size becomes a block size, and a block size a segment size."""

from __future__ import annotations

from typing import Final

from vramscope_analysis.allocator.settings import POWER2_DIVISION_SLOTS, AllocatorSettings

MIN_BLOCK_BYTES: Final = 512
"""``kMinBlockSize``: every block size is a multiple of it."""
SMALL_BYTES: Final = 1 << 20
"""``kSmallSize``: the largest request that the small pool serves (``get_pool``)."""
SMALL_SEGMENT_BYTES: Final = 2 << 20
"""``kSmallBuffer``: the segment size of the small pool."""
MIN_LARGE_ALLOC_BYTES: Final = 10 << 20
"""``kMinLargeAlloc``: from here on a request gets a segment of its own size."""
ROUND_LARGE_BYTES: Final = 2 << 20
"""``kRoundLarge``: such a segment is a multiple of it."""


def round_up(size_bytes: int, multiple: int) -> int:
    """Smallest multiple of ``multiple`` that is not below ``size_bytes``."""
    return -(-size_bytes // multiple) * multiple


def power2_divisions(size_bytes: int, settings: AllocatorSettings) -> int:
    """Divisions that apply to a size (``roundup_power2_divisions(size)``)."""
    slot = size_bytes.bit_length() - 1 - 20
    return settings.roundup_power2_divisions[min(max(slot, 0), POWER2_DIVISION_SLOTS - 1)]


def round_to_power2_division(size_bytes: int, divisions: int) -> int:
    """Round up to the next division between two powers of two.

    Follows ``roundup_power2_next_division``.
    """
    floor = 1 << (size_bytes.bit_length() - 1)
    if size_bytes == floor:
        return size_bytes
    step = floor // divisions
    return round_up(size_bytes, step) if step else floor << 1


def round_size(size_bytes: int, settings: AllocatorSettings) -> int:
    """Block size for a request (``DeviceCachingAllocator::round_size``)."""
    if size_bytes < MIN_BLOCK_BYTES:
        return MIN_BLOCK_BYTES
    divisions = power2_divisions(size_bytes, settings)
    if divisions > 1 and size_bytes > MIN_BLOCK_BYTES * divisions:
        return round_to_power2_division(size_bytes, divisions)
    return round_up(size_bytes, MIN_BLOCK_BYTES)


def segment_size(block_bytes: int, settings: AllocatorSettings) -> int:
    """Segment to take from the device for a block (``get_allocation_size``)."""
    if block_bytes <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    if block_bytes < MIN_LARGE_ALLOC_BYTES:
        return settings.large_segment_bytes
    return round_up(block_bytes, ROUND_LARGE_BYTES)

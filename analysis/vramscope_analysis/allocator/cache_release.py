"""Giving cached memory back to the device: what is released, and in which order."""

from __future__ import annotations

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.device_memory import DeviceMemory
from vramscope_analysis.allocator.expandable_memory import ExpandableMemory
from vramscope_analysis.allocator.pool import BlockPool, set_order
from vramscope_analysis.allocator.settings import UNLIMITED, AllocatorSettings


def release_blocks(pool: BlockPool, device: DeviceMemory, expandable: ExpandableMemory) -> None:
    """Release what is free as a whole: segments, then pages (``release_blocks``)."""
    to_unmap = [b for b in pool.free if b.segment.is_expandable] if expandable.segments else []
    for block in pool.whole_in_order():
        if not block.segment.is_expandable:
            device.release(block)
    for block in to_unmap:
        expandable.unmap(block)


def release_oversize_blocks(
    pool: BlockPool,
    size_bytes: int,
    stream: int,
    settings: AllocatorSettings,
    device: DeviceMemory,
) -> bool:
    """Release just enough oversize segments (``release_available_cached_blocks``).

    One that is large enough alone, otherwise the largest first.

    Args:
        pool: the pool of the request.
        size_bytes: rounded size of the request.
        stream: stream of the request.
        settings: without a ``max_split_size`` nothing is oversize.
        device: where the segments go.

    Returns:
        Whether that many bytes were released.
    """
    limit = settings.max_split_size_bytes
    if limit == UNLIMITED:
        return False
    wanted_bytes = max(size_bytes, limit)
    candidates = pool.free.of_stream(stream)
    block = candidates.first_at_least(wanted_bytes)
    if block is not None and not block.segment.is_expandable:
        if block.is_split:
            # Oversize since the setting changed. PyTorch would hand the device an address
            # inside a segment here, which it refuses.
            return False
        device.release(block)
        return True
    released_bytes = 0
    for block in candidates.before(wanted_bytes):
        if released_bytes >= wanted_bytes or block.size_bytes < limit:
            break
        if not block.segment.is_expandable and not block.is_split:
            released_bytes += block.size_bytes
            device.release(block)
    return released_bytes >= wanted_bytes


def collect_garbage(pool: BlockPool, excess_bytes: int, device: DeviceMemory) -> None:
    """Release the older free segments of a pool (``garbage_collect_cached_blocks``).

    Those of at least the average age go, again and again until enough is released; nothing is
    waited for. Expandable segments count for the average, but stay.

    Args:
        pool: the large pool.
        excess_bytes: how much is above the threshold.
        device: where the segments go.
    """
    released_bytes = 0
    freed = True
    while released_bytes < excess_bytes and freed and pool.whole:
        count = len(pool.whole)
        threshold = (count * pool.searches - pool.whole_bases) / count
        old: list[Block] = []
        for block in pool.whole:  # the oldest first
            if pool.age(block) < threshold:
                break
            if not block.segment.is_expandable:
                old.append(block)
        freed = bool(old)
        for block in sorted(old, key=set_order):
            released_bytes += block.size_bytes
            device.release(block)

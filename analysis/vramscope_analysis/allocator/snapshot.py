"""Segments and blocks in the structure of ``torch.cuda.memory_snapshot()``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.segment import Segment


def segment_entries(segments: Iterable[Segment]) -> list[dict[str, Any]]:
    """Segments by address (``DeviceCachingAllocator::snapshot``).

    An expandable segment has one entry for each contiguous range that is mapped.
    """
    entries = [entry_of(blocks) for segment in segments for blocks in mapped_ranges(segment)]
    return sorted(entries, key=lambda entry: int(entry["address"]))


def mapped_ranges(segment: Segment) -> Iterator[list[Block]]:
    """Neighbouring blocks with memory behind them: all of a plain segment's."""
    blocks: list[Block] = []
    for block in segment.blocks():
        if block.mapped:
            blocks.append(block)
        elif blocks:
            yield blocks
            blocks = []
    if blocks:
        yield blocks


def entry_of(blocks: list[Block]) -> dict[str, Any]:
    """One segment with its totals and its blocks. The model keeps no stacks: no frames."""
    total = allocated = active = requested = 0
    for block in blocks:
        total += block.size_bytes
        if block.allocated:
            allocated += block.size_bytes
        if block.allocated or block.pending:
            active += block.size_bytes
            requested += block.requested_bytes
    segment = blocks[0].segment
    return {
        "device": 0,
        "address": blocks[0].address,
        "total_size": total,
        "allocated_size": allocated,
        "active_size": active,
        "requested_size": requested,
        "stream": segment.stream,
        "segment_type": "small" if segment.pool.is_small else "large",
        "segment_pool_id": segment.pool.pool_id,
        "is_expandable": segment.is_expandable,
        "frames": [],
        "blocks": [block_entry(block) for block in blocks],
    }


def block_entry(block: Block) -> dict[str, Any]:
    """One block. A free block keeps the size of its last request, as PyTorch's does."""
    return {
        "address": block.address,
        "size": block.size_bytes,
        "requested_size": block.requested_bytes,
        "state": block.state,
        "frames": [],
    }

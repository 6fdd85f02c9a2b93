"""Segments and blocks in the structure of ``torch.cuda.memory_snapshot()``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.segment import Segment


def segment_entries(segments: Iterable[Segment]) -> list[dict[str, Any]]:
    """One entry per segment, by address (``DeviceCachingAllocator::snapshot``)."""
    return [segment_entry(segment) for segment in sorted(segments, key=lambda entry: entry.address)]


def segment_entry(segment: Segment) -> dict[str, Any]:
    """One segment with its totals and its blocks. The model keeps no stacks: no frames."""
    allocated = active = requested = 0
    blocks: list[dict[str, Any]] = []
    for block in segment.blocks():
        blocks.append(block_entry(block))
        if block.allocated:
            allocated += block.size_bytes
        if block.allocated or block.pending:
            active += block.size_bytes
            requested += block.requested_bytes
    return {
        "device": 0,
        "address": segment.address,
        "total_size": segment.size_bytes,
        "allocated_size": allocated,
        "active_size": active,
        "requested_size": requested,
        "stream": segment.stream,
        "segment_type": "small" if segment.pool.is_small else "large",
        "segment_pool_id": segment.pool.pool_id,
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
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

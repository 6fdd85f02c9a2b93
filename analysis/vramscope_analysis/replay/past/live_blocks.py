"""What was live at any moment of a recording."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vramscope_analysis.allocator import DEFAULT_POOL_ID, PoolId
from vramscope_analysis.replay.past.past_blocks import PastBlocks
from vramscope_analysis.replay.past.undo import ALLOC, Undo
from vramscope_analysis.replay.past.unknown_pools import UnknownPools
from vramscope_analysis.replay.recording import Recording


@dataclass(frozen=True, slots=True)
class LiveBlock:
    """A block that was live, or freed and still in use by another stream.

    Args:
        address: where it starts.
        size_bytes: how long it is.
        requested_bytes: as asked for.
        stream: the one it was allocated for.
        pool_id: its private pool; (0, 0) is the default pool.
        is_pending: already freed.
        allocated_at: its ``alloc`` entry; -1: allocated before the first entry.
        freed_at: its ``free_completed`` entry; the number of entries if it outlives them.
        stack: index of the stack that allocated it; -1: not recorded, or before the first entry.
    """

    address: int
    size_bytes: int
    requested_bytes: int
    stream: int
    pool_id: PoolId
    is_pending: bool
    allocated_at: int
    freed_at: int
    stack: int


def live_blocks(recording: Recording, position: int) -> list[LiveBlock]:
    """Blocks that were live before one entry, by address, found by undoing all that follows.

    Args:
        recording: what happened, and the segments at its end.
        position: the entry; the number of entries asks for the end.

    Raises:
        ValueError: the recording has no such position.
    """
    undo = Undo(recording)
    undo.back_to(position)
    held = UnknownPools(recording, position).resolved(undo.held())
    past = PastBlocks(recording, undo, held)
    allocated_at = _last_allocs(recording, position)
    stacks = recording.events.stacks
    result: list[LiveBlock] = []
    for block in past.blocks:
        entry = allocated_at.get(block.address, -1)
        result.append(
            LiveBlock(
                address=block.address,
                size_bytes=block.size_bytes,
                requested_bytes=block.requested_bytes,
                stream=block.held.stream,
                pool_id=block.held.pool_id or DEFAULT_POOL_ID,
                is_pending=block.is_pending,
                allocated_at=entry,
                freed_at=block.freed_at,
                stack=int(stacks[entry]) if entry >= 0 else -1,
            )
        )
    return result


def _last_allocs(recording: Recording, position: int) -> dict[int, int]:
    """The last ``alloc`` entry of each address before a position."""
    events = recording.events
    entries = np.flatnonzero(events.actions[:position] == ALLOC)
    return dict(zip(events.addresses[entries].tolist(), entries.tolist(), strict=True))

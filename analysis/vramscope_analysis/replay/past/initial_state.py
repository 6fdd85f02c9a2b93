"""Where a replay starts when the first entries are missing: the state before what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vramscope_analysis.allocator.version_rules import TieBreak, tie_break_of
from vramscope_analysis.replay.past.expandable_ranges import range_addresses
from vramscope_analysis.replay.past.held_memory import HeldSegment
from vramscope_analysis.replay.past.past_blocks import PastBlock, PastBlocks
from vramscope_analysis.replay.past.registration_order import Registrations
from vramscope_analysis.replay.past.undo import ALLOC, FREE_REQUESTED, Undo
from vramscope_analysis.replay.past.unknown_pools import UnknownPools
from vramscope_analysis.replay.recording import Recording


@dataclass(frozen=True, slots=True)
class InferredState:
    """How much of an initial state was read off the end of the recording, and how much inferred.

    Args:
        recorded_segments: there at the end as well.
        remade_segments: given back within the recording, known from the entry that says so.
        guessed_pools: of those, how often neither an entry nor a segment tells the pool.
        recorded_blocks: there at the end as well, which shows their size.
        recorded_bytes: their sizes.
        inferred_blocks: freed within the recording; there is only one size that they can have had.
        inferred_bytes: their sizes.
        guessed_blocks: freed within the recording; they have the smallest of several sizes.
        guessed_bytes: their sizes.
        uncertain_bytes: by how much the guessed blocks may be too small, at most and all together.
        pending_blocks: freed already, but still in use by other streams; counted above as well.
        unseen_allocs: blocks of the end that were allocated after the last entry.
        unseen_frees: blocks that were freed after the last entry.
        unseen_segments: segments and pages that changed after the last entry.
        misfits: blocks for which the settings of the end are too large.
        impossible: entries that no allocator writes.
    """

    recorded_segments: int = 0
    remade_segments: int = 0
    guessed_pools: int = 0
    recorded_blocks: int = 0
    recorded_bytes: int = 0
    inferred_blocks: int = 0
    inferred_bytes: int = 0
    guessed_blocks: int = 0
    guessed_bytes: int = 0
    uncertain_bytes: int = 0
    pending_blocks: int = 0
    unseen_allocs: int = 0
    unseen_frees: int = 0
    unseen_segments: int = 0
    misfits: int = 0
    impossible: int = 0

    @property
    def contradictions(self) -> int:
        """How often the entries and the end of the recording disagree."""
        return (
            self.unseen_allocs
            + self.unseen_frees
            + self.unseen_segments
            + self.misfits
            + self.impossible
        )


@dataclass(frozen=True, slots=True)
class InitialState:
    """State of the allocator before one entry of a recording.

    Args:
        position: that entry, where a replay starts.
        segments: in PyTorch's structure, by address, for ``CachingAllocator.restore``. Free
            blocks have no requested size, nothing has frames. Two keys are not PyTorch's:
            ``range_address`` of an expandable segment, where its range of addresses begins, and
            from torch 2.12 on ``registration`` of all others and of their blocks: lower means
            registered earlier.
        inferred: how sure all of it is.
        is_complete: the recording begins with an empty allocator: nothing is missing.
    """

    position: int
    segments: list[dict[str, Any]]
    inferred: InferredState
    is_complete: bool


def initial_state(recording: Recording, position: int | None = None) -> InitialState:
    """Infer the allocator's state at the start of a recording by undoing all that follows.

    No recording tells of the time before it how long free blocks had been free, which
    ``garbage_collection_threshold`` goes by; the totals and the peaks of the counters; and, from
    torch 2.12 on, the age of memory where no later choice shows it (in 2.12 that of pages at all).

    Args:
        recording: what happened, and the segments at its end.
        position: entry before which the state is wanted. None: the first one at which no call is
            under way. A ring that wrapped begins with any entry, perhaps in the middle of a
            ``malloc``; what such a call has left to do comes before the position then.

    Raises:
        ValueError: the recording has no such position.
    """
    undo = Undo(recording)
    undo.back_to(first_call(recording) if position is None else position)
    state = _state(recording, undo)
    if position is None and undo.position:
        undo.back_to(0)
        if undo.is_empty:
            state = _state(recording, undo)
    return state


def first_call(recording: Recording) -> int:
    """First entry at which no call is under way, as far as the entries before it tell.

    A call ends with its ``alloc``, or with what its ``free`` completes; before that come the
    entries of segments and of pending frees.
    """
    actions = recording.events.actions
    begins = np.flatnonzero((actions == ALLOC) | (actions == FREE_REQUESTED))
    if not len(begins):
        return 0
    first = int(begins[0])
    return first + 1 if actions[first] == ALLOC else first


def _state(recording: Recording, undo: Undo) -> InitialState:
    pools = UnknownPools(recording, undo.position)
    held = pools.resolved(undo.held())
    past = PastBlocks(recording, undo, held)
    return InitialState(
        position=undo.position,
        segments=list(_segments(recording, held, past)),
        inferred=_inferred(held, past, guessed_pools=pools.guesses),
        is_complete=undo.position == 0 and undo.is_empty,
    )


def _inferred(
    held: Sequence[HeldSegment], past: PastBlocks, *, guessed_pools: int
) -> InferredState:
    recorded = [block for block in past.blocks if block.is_recorded]
    guessed = [block for block in past.blocks if block.excess_bytes]
    inferred = [b for b in past.blocks if not b.is_recorded and not b.excess_bytes]
    recorded_segments = sum(segment.freed_at is None for segment in held)
    return InferredState(
        recorded_segments=recorded_segments,
        remade_segments=len(held) - recorded_segments,
        guessed_pools=guessed_pools,
        recorded_blocks=len(recorded),
        recorded_bytes=sum(block.size_bytes for block in recorded),
        inferred_blocks=len(inferred),
        inferred_bytes=sum(block.size_bytes for block in inferred),
        guessed_blocks=len(guessed),
        guessed_bytes=sum(block.size_bytes for block in guessed),
        uncertain_bytes=sum(block.excess_bytes for block in guessed),
        pending_blocks=sum(block.is_pending for block in past.blocks),
        **past.contradictions,
    )


def _segments(
    recording: Recording, held: Sequence[HeldSegment], past: PastBlocks
) -> Iterator[dict[str, Any]]:
    """Segments with their blocks, and with the two keys that are not PyTorch's."""
    ranges = range_addresses(recording, past.position, held)
    blocks = past.blocks
    order = None
    if tie_break_of(recording.version) is not TieBreak.ADDRESS:
        order = Registrations(recording, past.position, held, blocks)
    index = 0
    for segment in held:
        first = index
        while index < len(blocks) and blocks[index].address < segment.end:
            index += 1
        entry = _segment_entry(recording.device, segment, blocks[first:index])
        if segment.is_expandable:
            entry["range_address"] = ranges[segment.address]
        elif order is not None:
            entry["registration"] = order.of_segments[segment.address]
            for part in entry["blocks"]:
                part["registration"] = order.of_blocks[part["address"]]
        yield entry


def _segment_entry(
    device: int, segment: HeldSegment, blocks: Sequence[PastBlock]
) -> dict[str, Any]:
    """One segment in PyTorch's structure."""
    return {
        "device": device,
        "address": segment.address,
        "total_size": segment.size_bytes,
        "allocated_size": sum(block.size_bytes for block in blocks if not block.is_pending),
        "active_size": sum(block.size_bytes for block in blocks),
        "requested_size": sum(block.requested_bytes for block in blocks),
        "stream": segment.stream,
        "segment_type": "small" if segment.is_small else "large",
        "segment_pool_id": segment.pool_id,
        "is_expandable": segment.is_expandable,
        "frames": [],
        "blocks": list(_block_entries(segment, blocks)),
    }


def _block_entries(segment: HeldSegment, blocks: Sequence[PastBlock]) -> Iterator[dict[str, Any]]:
    """The blocks of one segment and the free space before, between and behind them."""
    address = segment.address
    for block in blocks:
        if address < block.address:
            yield _block_entry(address, block.address - address)
        state = "active_pending_free" if block.is_pending else "active_allocated"
        yield _block_entry(block.address, block.size_bytes, block.requested_bytes, state)
        address = block.address + block.size_bytes
    if address < segment.end:
        yield _block_entry(address, segment.end - address)


def _block_entry(
    address: int, size_bytes: int, requested_bytes: int = 0, state: str = "inactive"
) -> dict[str, Any]:
    return {
        "address": address,
        "size": size_bytes,
        "requested_size": requested_bytes,
        "state": state,
        "frames": [],
    }

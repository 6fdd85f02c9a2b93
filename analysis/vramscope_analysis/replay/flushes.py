"""Moments of a recording at which memory went back to the device, and what may have caused them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.allocator.rounding import (
    MIN_LARGE_ALLOC_BYTES,
    SMALL_BYTES,
    SMALL_SEGMENT_BYTES,
    round_size,
    segment_size,
)
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action

TAKES: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)


@dataclass(frozen=True)
class Flush:
    """Segments or pages that were given back between two entries that a caller caused.

    Args:
        begin: position of the first entry after the one that a caller caused before.
        first: position of the first entry that gives memory back.
        last: position of the last one.
        cause: position of the next entry that a caller caused; the number of entries if none.
        reserved_bytes: held before ``first``.
        reserved_before_last_bytes: held before ``last``.
        asked_bytes: the segment that the cause asked the device for; 0 if it asked for nothing,
            so that nothing but a call of the user can be behind the flush.
        is_failure: the cause is an ``oom``.
        is_collectable: it may be garbage collection, which leaves small segments and pages alone
            (``garbage_collect_cached_blocks``).
        is_partial: a freed block waited for another stream even then. A flush of everything waits
            for all of them (``synchronize_and_free_events``).
        is_users: a caller asked for the flush, and not the request: the stacks show it, or a
            failed request would have been served by what went back.
    """

    begin: int
    first: int
    last: int
    cause: int
    reserved_bytes: int
    reserved_before_last_bytes: int
    asked_bytes: int
    is_failure: bool
    is_collectable: bool
    is_partial: bool
    is_users: bool


def immediate_frees(recording: Recording) -> NDArray[np.bool_]:
    """Where the next entry completes a ``free_requested``: no other stream had used the block.

    Unless the next request would have been served by that block, and failed: then the block waited
    until the flush of that request.
    """
    events = recording.events
    immediate = np.zeros(len(events), dtype=np.bool_)
    immediate[:-1] = (
        (events.actions[:-1] == Action.FREE_REQUESTED)
        & (events.actions[1:] == Action.FREE_COMPLETED)
        & (events.addresses[:-1] == events.addresses[1:])
    )
    for failure in np.flatnonzero(events.actions == Action.OOM).tolist():
        if failure >= 2 and immediate[failure - 2] and _would_serve(recording, failure):
            immediate[failure - 2] = False
    return immediate


def _would_serve(recording: Recording, failure: int) -> bool:
    """Whether the block freed right before a failure fits it."""
    freed = failure - 2
    freed_bytes = round_size(int(recording.events.sizes[freed]), recording.settings)
    return _fits(recording, freed, freed_bytes, failure, is_small=freed_bytes <= SMALL_BYTES)


def _fits(
    recording: Recording, freed: int, freed_bytes: int, request: int, *, is_small: bool
) -> bool:
    """Whether a request would find what became free at an entry (``get_free_block``)."""
    events, settings = recording.events, recording.settings
    asked_bytes = round_size(int(events.sizes[request]), settings)
    is_near = asked_bytes <= freed_bytes < settings.max_split_size_bytes
    if not is_near or is_small != (asked_bytes <= SMALL_BYTES):
        return False
    pools = events.pool_ids
    is_same_pool = pools is None or (pools[freed] == pools[request]).all()
    return bool(is_same_pool and events.streams[freed] == events.streams[request])


def late_completions(recording: Recording) -> NDArray[np.bool_]:
    """Where a block becomes free that had waited for another stream (``process_events``)."""
    late: NDArray[np.bool_] = recording.events.actions == Action.FREE_COMPLETED
    late[1:] &= ~immediate_frees(recording)[:-1]
    return late


def blocks_waiting(recording: Recording) -> NDArray[np.int8]:
    """By how much each entry changes how many freed blocks wait for other streams."""
    requested = recording.events.actions == Action.FREE_REQUESTED
    waits = requested & ~immediate_frees(recording)
    changes: NDArray[np.int8] = waits.astype(np.int8) - late_completions(recording)
    return changes


def flushes_of(recording: Recording) -> list[Flush]:
    """Every flush, in order."""
    events = recording.events
    segment_positions = events.segment_events
    given_back = segment_positions[events.segment_signs[segment_positions] < 0]
    if not len(given_back):
        return []
    is_cause = (events.segment_signs == 0) & ~late_completions(recording)
    causes = np.concatenate(([-1], np.flatnonzero(is_cause), [len(events)]))
    cause_of = np.searchsorted(causes, given_back)
    # One flush for each cause that something was given back before.
    firsts = np.flatnonzero(np.diff(cause_of, prepend=-1))
    lasts = np.append(firsts[1:], len(given_back)) - 1
    waiting = np.cumsum(blocks_waiting(recording))
    return [
        _flush(recording, previous + 1, first, last, cause, is_partial=bool(waiting[cause - 1] > 0))
        for previous, first, last, cause in zip(
            causes[cause_of[firsts] - 1].tolist(),
            given_back[firsts].tolist(),
            given_back[lasts].tolist(),
            causes[cause_of[firsts]].tolist(),
            strict=True,
        )
    ]


def reserved_before(recording: Recording, event: int) -> int:
    """Bytes held before an entry."""
    at = int(np.searchsorted(recording.events.segment_events, event))
    return int(recording.reserved_bytes[at - 1]) if at else recording.reserved_at_start_bytes


def asked_of_device(recording: Recording, event: int) -> int:
    """Bytes of the segment for a request that nothing cached fits (``get_allocation_size``)."""
    settings = recording.settings
    return segment_size(round_size(int(recording.events.sizes[event]), settings), settings)


def _flush(
    recording: Recording, begin: int, first: int, last: int, cause: int, *, is_partial: bool
) -> Flush:
    events = recording.events
    action = int(events.actions[cause]) if cause < len(events) else None
    is_failure = action == Action.OOM
    took = bool(np.isin(events.actions[last + 1 : cause], TAKES).any())
    asks = is_failure or (action == Action.ALLOC and took)
    part = slice(first, last + 1)
    freed = events.sizes[part][events.actions[part] == Action.SEGMENT_FREE]
    unmapped = bool((events.actions[part] == Action.SEGMENT_UNMAP).any())
    return Flush(
        begin=begin,
        first=first,
        last=last,
        cause=cause,
        reserved_bytes=reserved_before(recording, first),
        reserved_before_last_bytes=reserved_before(recording, last),
        asked_bytes=asked_of_device(recording, cause) if asks else 0,
        is_failure=is_failure,
        is_collectable=not unmapped and not (freed < MIN_LARGE_ALLOC_BYTES).any(),
        is_partial=is_partial,
        is_users=not asks
        or _stacks_differ(events.stacks, first, cause)
        or (is_failure and _gave_back_what_fits(recording, begin, cause)),
    )


def _gave_back_what_fits(recording: Recording, begin: int, cause: int) -> bool:
    """Whether a segment went back that a request would have found before it flushed anything.

    Nothing is known where freed blocks were waited for, perhaps by that flush.
    """
    events = recording.events
    actions = events.actions[begin:cause]
    if (actions == Action.FREE_COMPLETED).any():
        return False
    gone = (np.flatnonzero(actions == Action.SEGMENT_FREE) + begin).tolist()
    sizes: list[int] = events.sizes[gone].tolist()
    return any(
        _fits(recording, at, size, cause, is_small=size <= SMALL_SEGMENT_BYTES)
        for at, size in zip(gone, sizes, strict=True)
    )


def _stacks_differ(stacks: NDArray[np.int32], event: int, cause: int) -> bool:
    """Whether two entries come from different calls. Without stacks, nothing is known."""
    one, other = int(stacks[event]), int(stacks[cause])
    return one >= 0 and other >= 0 and one != other

"""Kinds of entries that a trace should have and does not (``skip_actions``, torch 2.11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot import Action

if TYPE_CHECKING:
    from vramscope_analysis.replay.recording import Events

Intervals = NDArray[np.uint64]
"""(n, 2): first address, first address behind."""


def missing_actions(
    events: Events, segments: list[dict[str, Any]], *, is_complete: bool
) -> list[Action]:
    """Kinds without a single entry, where the other entries show that there were some.

    ``free_requested`` is never among them: ``free_completed`` says enough. Nor is ``oom``, which
    nothing else shows.

    Args:
        events: the trace.
        segments: what was held at the end, in PyTorch's structure.
        is_complete: nothing was held when the trace begins.
    """
    missing: list[Action] = []
    if not _has(events, Action.ALLOC) and _shows_allocations(events, is_complete=is_complete):
        missing.append(Action.ALLOC)
    if not _has(events, Action.FREE_COMPLETED) and _repeats(_addresses(events, Action.ALLOC)):
        missing.append(Action.FREE_COMPLETED)
    taken, given = (_intervals_of(events, sign) for sign in (1, -1))
    if not len(taken) and (_overlap(given) or _lie_elsewhere(events, segments, given)):
        missing.append(Action.SEGMENT_ALLOC)
    if not len(given) and _overlap(taken):
        missing.append(Action.SEGMENT_FREE)
    return missing


def _has(events: Events, action: Action) -> bool:
    return bool((events.actions == action).any())


def _addresses(events: Events, action: Action) -> NDArray[np.uint64]:
    found: NDArray[np.uint64] = events.addresses[events.actions == action]
    return found


def _repeats(addresses: NDArray[np.uint64]) -> bool:
    return len(np.unique(addresses)) < len(addresses)


def _shows_allocations(events: Events, *, is_complete: bool) -> bool:
    """Whether blocks were freed twice, or freed though there were none at the beginning."""
    kinds = (Action.FREE_REQUESTED, Action.FREE_COMPLETED)
    freed = [_addresses(events, action) for action in kinds]
    return any(map(_repeats, freed)) or (is_complete and any(map(len, freed)))


def _intervals_of(events: Events, sign: int) -> Intervals:
    """Memory that came from the device (1) or went back (-1)."""
    rows = events.segment_signs == sign
    return _intervals(events.addresses[rows], events.sizes[rows])


def _intervals(starts: NDArray[np.uint64], sizes: NDArray[np.int64]) -> Intervals:
    return np.stack((starts, starts + sizes.astype(np.uint64)), axis=1)


def _overlap(intervals: Intervals) -> bool:
    """Whether some memory came, or went back, twice."""
    by_start = intervals[np.argsort(intervals[:, 0])]
    return bool((by_start[1:, 0] < by_start[:-1, 1]).any())


def _lie_elsewhere(events: Events, segments: list[dict[str, Any]], given: Intervals) -> bool:
    """Whether blocks lie neither in what was held at the end nor in what was given back."""
    held = _intervals(
        np.array([each["address"] for each in segments], dtype=np.uint64),
        np.array([each["total_size"] for each in segments], dtype=np.int64),
    )
    known = np.concatenate((given, held))
    starts, ends = np.sort(known[:, 0]), np.sort(known[:, 1])
    blocks = _addresses(events, Action.ALLOC)
    # As many intervals have ended before an address as have begun: it lies in none.
    begun, ended = (np.searchsorted(bounds, blocks, side="right") for bounds in (starts, ends))
    return bool((begun == ended).any())

"""Which pool each recorded request was served from: the default one, or one of a CUDA graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.allocator import DEFAULT_POOL_ID, PoolId
from vramscope_analysis.replay.mapped_ranges import mapped_ranges
from vramscope_analysis.replay.recording import Events, Recording
from vramscope_analysis.snapshot import Action


@dataclass(frozen=True, eq=False)
class Pools:
    """Pools of the entries of a trace.

    Args:
        ids: pool ids that occur; the first is the default pool.
        of_event: index into ``ids`` for each entry; None if all belong to the default pool.
    """

    ids: list[PoolId]
    of_event: NDArray[np.int32] | None

    @classmethod
    def of_recording(cls, recording: Recording) -> Pools:
        """As the entries say (from torch 2.12 on), else as the segments at the end tell.

        Up to torch 2.11 an entry carries no pool. It has that of the segment at its address if
        the segment was still there at the end; otherwise the default pool is assumed.
        """
        if recording.events.pool_ids is not None:
            return cls._as_recorded(recording.events.pool_ids)
        private = [s for s in recording.segments if pool_id(s) != DEFAULT_POOL_ID]
        if not private:
            return cls([DEFAULT_POOL_ID], None)
        ids = [DEFAULT_POOL_ID, *dict.fromkeys(pool_id(segment) for segment in private)]
        return cls(ids, _pools_by_address(recording.events, private, ids))

    @classmethod
    def _as_recorded(cls, pool_ids: NDArray[np.int64]) -> Pools:
        if not pool_ids.any():
            return cls([DEFAULT_POOL_ID], None)
        distinct, inverse = np.unique(pool_ids, axis=0, return_inverse=True)
        ids = [DEFAULT_POOL_ID]
        indices = np.zeros(len(distinct), dtype=np.int32)
        for row, (first, second) in enumerate(distinct.tolist()):
            # An entry without the key reads (-1, -1).
            if (first, second) != DEFAULT_POOL_ID and first >= 0:
                indices[row] = len(ids)
                ids.append((first, second))
        return cls(ids, indices[inverse.reshape(-1)])


def pool_id(segment: dict[str, Any]) -> PoolId:
    """The pool of a segment (``segment_pool_id``)."""
    first, second = segment.get("segment_pool_id", DEFAULT_POOL_ID)
    return int(first), int(second)


@dataclass(frozen=True)
class _Stay:
    """Addresses that belong to one private pool from an entry on."""

    address: int
    end: int
    since: int
    pool_id: PoolId


def _pools_by_address(
    events: Events, private: list[dict[str, Any]], ids: list[PoolId]
) -> NDArray[np.int32]:
    """Index of the pool for each entry."""
    stays = sorted(_stays(events, private), key=lambda stay: stay.address)
    starts = np.array([stay.address for stay in stays], dtype=np.uint64)
    ends = np.array([stay.end for stay in stays], dtype=np.uint64)
    since = np.array([stay.since for stay in stays], dtype=np.int64)
    indices = np.array([ids.index(stay.pool_id) for stay in stays], dtype=np.int32)
    at = np.searchsorted(starts, events.addresses, side="right") - 1
    inside = (at >= 0) & (events.addresses < ends[at]) & (events.actions != Action.OOM)
    inside &= np.arange(len(events)) >= since[at]
    return np.where(inside, indices[at], 0).astype(np.int32)


def _stays(events: Events, private: list[dict[str, Any]]) -> Iterator[_Stay]:
    """Where the private segments of the end have been, and since when."""
    ranges = mapped_ranges(events) if any(segment["is_expandable"] for segment in private) else []
    for segment in private:
        address, end = segment["address"], segment["address"] + segment["total_size"]
        if not segment["is_expandable"]:
            came = np.flatnonzero(
                (events.actions == Action.SEGMENT_ALLOC) & (events.addresses == address)
            )
            yield _Stay(address, end, int(came[-1]) if len(came) else 0, pool_id(segment))
            continue
        # Several pieces of one range tell the same.
        start, stop = next(((a, b) for a, b in ranges if a <= address < b), (address, end))
        yield _Stay(
            min(start, address),
            max(stop, end),
            _mapped_since(events, start, stop),
            pool_id(segment),
        )


def _mapped_since(events: Events, start: int, end: int) -> int:
    """When the first page of the last stay at some addresses was mapped.

    A range without pages is given up (``release_expandable_segment``): the next one at the same
    addresses is another one, perhaps of another pool.
    """
    inside = (events.addresses >= start) & (events.addresses < end)
    inside &= np.isin(events.actions, (Action.SEGMENT_MAP, Action.SEGMENT_UNMAP))
    positions = np.flatnonzero(inside)
    held = np.cumsum(events.sizes[positions] * events.segment_signs[positions])
    given_up = np.flatnonzero(held == 0)
    return int(positions[given_up[-1]]) + 1 if len(given_up) else 0

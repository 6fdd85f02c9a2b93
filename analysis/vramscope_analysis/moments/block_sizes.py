"""How large the blocks of a recording were: its entries only tell what was asked for.

A block is as long as its rounded request, or it kept a rest that was too small to be split off
(``should_split``). Free blocks next to each other are always merged, so the free block that served
a request reached to the next live block, or to the end of its segment.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.allocator import AllocatorSettings, settings_from_snapshot
from vramscope_analysis.allocator.rounding import MIN_BLOCK_BYTES, SMALL_BYTES, round_size
from vramscope_analysis.snapshot import Action, Snapshot, Trace

if TYPE_CHECKING:
    from vramscope_analysis.moments.lifetimes import Lifetimes

_MOST_SIZES: Final = 1 << 20


def block_sizes(
    snapshot: Snapshot,
    device: int,
    trace: Trace | None,
    lifetimes: Lifetimes,
    known: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Bytes that each block took.

    Exact for what was allocated within a recording, and for what is still there at its end. What
    was allocated before the first entry and is gone has its rounded request: it may have been
    longer by up to 1 MiB.

    Args:
        snapshot: for its settings and segments.
        device: index of the device.
        trace: its entries.
        lifetimes: with sizes that are right where known.
        known: blocks that the segments show at the end.
    """
    settings = _settings_of(snapshot)
    rounded = rounded_sizes(lifetimes.requested, settings)
    size = np.where(known, lifetimes.size, rounded)
    if trace is None:
        return size
    wanted = (lifetimes.born >= 0) & ~known & (rounded > SMALL_BYTES)
    if settings.expandable_segments or not wanted.any():
        return size
    _add_rests(snapshot, device, trace, lifetimes, wanted, size, settings)
    return size


def rounded_sizes(requested: NDArray[np.int64], settings: AllocatorSettings) -> NDArray[np.int64]:
    """Block sizes of requests (``round_size``)."""
    if not any(divisions > 1 for divisions in settings.roundup_power2_divisions):
        return np.maximum(-(-requested // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES, MIN_BLOCK_BYTES)
    different, index = np.unique(requested, return_inverse=True)
    sizes = [round_size(max(size, 1), settings) for size in different.tolist()]
    return np.array(sizes, np.int64)[index]


def _settings_of(snapshot: Snapshot) -> AllocatorSettings:
    try:
        return settings_from_snapshot(snapshot.settings)
    except ValueError:
        # What one entry of the settings says wrongly is no reason to show nothing.
        return AllocatorSettings()


def _add_rests(
    snapshot: Snapshot,
    device: int,
    trace: Trace,
    lifetimes: Lifetimes,
    wanted: NDArray[np.bool_],
    size: NDArray[np.int64],
    settings: AllocatorSettings,
) -> None:
    """Walk forward, with the begins of live blocks and the edges of segments in one sorted list."""
    edges = _edges_before(snapshot, device, trace)
    before = lifetimes.born < 0
    edges.extend(lifetimes.address[before].tolist())
    edges.sort()
    turns = _turns(trace, lifetimes, before)
    is_wanted = wanted.tolist()
    sizes = size.tolist()
    most = settings.max_split_size_bytes
    for row, begin, end in turns:
        if row < 0:
            # The edges of a segment: a negative row takes them away.
            for edge in (begin, end):
                if row == -1:
                    insort(edges, edge)
                else:
                    _drop(edges, edge)
        elif end:
            _drop(edges, begin)
        else:
            at = bisect_right(edges, begin)
            if is_wanted[row] and at < len(edges):
                rest = edges[at] - begin - sizes[row]
                if rest > 0 and (rest <= SMALL_BYTES or sizes[row] >= most):
                    size[row] = edges[at] - begin
            edges.insert(at, begin)


def _drop(edges: list[int], edge: int) -> None:
    at = bisect_right(edges, edge) - 1
    if at >= 0 and edges[at] == edge:
        del edges[at]


def _edges_before(snapshot: Snapshot, device: int, trace: Trace) -> list[int]:
    """Begins and ends of the segments that were there before the first entry."""
    of_device = snapshot.segments.device == device
    held = dict(
        zip(
            snapshot.segments.address[of_device].tolist(),
            snapshot.segments.total_size[of_device].tolist(),
            strict=True,
        )
    )
    entries = np.flatnonzero(np.isin(trace.action, (Action.SEGMENT_ALLOC, Action.SEGMENT_FREE)))
    for entry in entries[::-1].tolist():
        if trace.action[entry] == Action.SEGMENT_ALLOC:
            held.pop(int(trace.address[entry]), None)
        else:
            held[int(trace.address[entry])] = int(trace.size[entry])
    return [edge for begin, size in held.items() for edge in (begin, begin + size)]


def _turns(
    trace: Trace, lifetimes: Lifetimes, before: NDArray[np.bool_]
) -> list[tuple[int, int, int]]:
    """(row, address, 0) for a block that comes, (row, address, 1) for one that goes, and
    (-1 or -2, begin, end) for a segment that comes or goes, in the order of the entries."""
    rows = np.arange(len(lifetimes))
    born = np.flatnonzero(~before)
    gone = np.flatnonzero(lifetimes.completed < lifetimes.entries)
    comes = np.flatnonzero(trace.action == Action.SEGMENT_ALLOC)
    goes = np.flatnonzero(trace.action == Action.SEGMENT_FREE)
    address = lifetimes.address.astype(np.int64)
    of_segments = trace.address.astype(np.int64)
    at = np.concatenate((lifetimes.born[born], lifetimes.completed[gone], comes, goes))
    row = np.concatenate((rows[born], rows[gone], np.full(len(comes), -1), np.full(len(goes), -2)))
    segments = np.concatenate((comes, goes))
    begin = np.concatenate((address[born], address[gone], of_segments[segments]))
    end = np.concatenate(
        (
            np.zeros(len(born), np.int64),
            np.ones(len(gone), np.int64),
            of_segments[segments] + trace.size[segments],
        )
    )
    order = np.argsort(at, kind="stable")
    return list(zip(row[order].tolist(), begin[order].tolist(), end[order].tolist(), strict=True))

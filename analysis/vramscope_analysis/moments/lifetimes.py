"""When each block of a recording was live: one row for each allocation, whenever it was made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.moments.block_sizes import block_sizes
from vramscope_analysis.snapshot import Action, BlockState, Snapshot, Trace

BEFORE: Final = -1
"""In place of an entry: it happened before the first one."""

_OF_BLOCKS: Final = (Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """Every block that was live at any moment of the recording of one device.

    A moment is the number of an entry and means the state after it; ``BEFORE`` is the state before
    the first. A block is live from ``born`` on and no longer at ``completed``; from ``freed`` on it
    only waits for another stream.

    Args:
        address: where the block begins.
        requested: bytes that were asked for.
        size: bytes that the block takes.
        born: its ``alloc`` entry; ``BEFORE``: allocated before the first entry.
        freed: its ``free_requested`` entry; ``entries`` if there is none.
        completed: its ``free_completed`` entry; ``entries`` if it outlives them.
        stack: index of the stack that allocated it, -1 where none is known.
        stream: handle of the stream that it was allocated for.
        entries: number of trace entries.
        unseen_allocs: blocks that came after the last entry, while the snapshot was being taken;
            they are left out.
        unseen_frees: blocks that went after the last entry; they are live to the end here.
    """

    address: NDArray[np.uint64]
    requested: NDArray[np.int64]
    size: NDArray[np.int64]
    born: NDArray[np.int64]
    freed: NDArray[np.int64]
    completed: NDArray[np.int64]
    stack: NDArray[np.int32]
    stream: NDArray[np.int64]
    entries: int
    unseen_allocs: int = 0
    unseen_frees: int = 0

    def __len__(self) -> int:
        return len(self.address)

    def live_at(self, moment: int) -> NDArray[np.intp]:
        """Rows of the blocks that were live at a moment, those waiting for a stream included."""
        return np.flatnonzero((self.born <= moment) & (self.completed > moment))


def lifetimes_of(snapshot: Snapshot, device: int) -> Lifetimes:
    """The blocks of one device: those of its trace, and those that only its segments know."""
    trace = snapshot.traces[device] if device < len(snapshot.traces) else None
    traced = _nothing(0) if trace is None or not len(trace) else _paired(snapshot, trace)
    return _with_the_end(snapshot, device, traced, trace)


def _nothing(entries: int) -> Lifetimes:
    none = np.zeros(0, np.int64)
    return Lifetimes(
        none.astype(np.uint64), none, none, none, none, none, none.astype(np.int32), none, entries
    )


def _paired(snapshot: Snapshot, trace: Trace) -> Lifetimes:
    """Each alloc with the frees that follow at its address, and the frees without one."""
    entries = np.flatnonzero(np.isin(trace.action, _OF_BLOCKS))
    if not len(entries):
        return _nothing(len(trace))
    order = np.argsort(trace.address[entries], kind="stable")
    entries = entries[order]
    action, address = trace.action[entries], trace.address[entries]
    begins = action == Action.ALLOC
    begins[0] = True
    begins[1:] |= address[1:] != address[:-1]
    row = np.cumsum(begins) - 1
    first = entries[begins]
    is_traced = action[begins] == Action.ALLOC
    freed = _first_of(action == Action.FREE_REQUESTED, row, entries, len(first), len(trace))
    completed = _first_of(action == Action.FREE_COMPLETED, row, entries, len(first), len(trace))
    if not (action == Action.FREE_COMPLETED).any():
        # Recorded without this kind: it follows the request at once, but for what still waits.
        pending = snapshot.blocks.state == BlockState.ACTIVE_PENDING_FREE
        waits = np.isin(address[begins], snapshot.blocks.address[pending])
        completed = np.where(waits, completed, freed)
    born = np.where(is_traced, first, BEFORE)
    # Its free was requested before the first entry.
    waited = ~is_traced & (freed > completed)
    freed = np.where(waited, BEFORE, np.minimum(freed, completed))
    return Lifetimes(
        address=address[begins],
        requested=trace.size[first],
        size=trace.size[first],
        born=born,
        freed=freed,
        completed=completed,
        stack=np.where(is_traced, trace.stack[first], -1).astype(np.int32),
        stream=trace.stream[first],
        entries=len(trace),
    )


def _first_of(
    wanted: NDArray[np.bool_],
    row: NDArray[np.intp],
    entries: NDArray[np.intp],
    rows: int,
    none: int,
) -> NDArray[np.int64]:
    """For each row the first of its entries that is wanted."""
    found = np.full(rows, none, np.int64)
    # Of several writes to one place the last one stays: that of the first entry.
    found[row[wanted][::-1]] = entries[wanted][::-1]
    return found


def _with_the_end(
    snapshot: Snapshot, device: int, traced: Lifetimes, trace: Trace | None
) -> Lifetimes:
    """Add what the segments know: blocks from before, sizes and stacks of what is still live."""
    blocks = snapshot.blocks
    is_live = (blocks.state == BlockState.ACTIVE_ALLOCATED) | (
        blocks.state == BlockState.ACTIVE_PENDING_FREE
    )
    rows = np.flatnonzero(is_live & (snapshot.segments.device[blocks.segment] == device))
    rows = rows[np.argsort(blocks.address[rows], kind="stable")]
    at_end = blocks.address[rows]
    size, stack = traced.size.copy(), traced.stack.copy()
    open_rows = np.flatnonzero(traced.completed == traced.entries)
    place = np.searchsorted(at_end, traced.address[open_rows])
    found = place < len(at_end)
    found[found] = at_end[place[found]] == traced.address[open_rows][found]
    matched, their = open_rows[found], rows[place[found]]
    size[matched] = blocks.size[their]
    stack[matched] = np.where(stack[matched] < 0, blocks.stack[their], stack[matched])
    others = np.setdiff1d(rows, their, assume_unique=True)
    is_new = np.isin(blocks.address[others], traced.address)
    older = others[~is_new]
    n = traced.entries
    pending = blocks.state[older] == BlockState.ACTIVE_PENDING_FREE
    known = np.zeros(len(traced) + len(older), np.bool_)
    known[matched] = True
    known[len(traced) :] = True
    joined = Lifetimes(
        address=np.concatenate((traced.address, blocks.address[older])),
        requested=np.concatenate((traced.requested, blocks.requested_size[older])),
        size=np.concatenate((size, blocks.size[older])),
        born=np.concatenate((traced.born, np.full(len(older), BEFORE))),
        freed=np.concatenate((traced.freed, np.where(pending, BEFORE, n))),
        completed=np.concatenate((traced.completed, np.full(len(older), n))),
        stack=np.concatenate((stack, blocks.stack[older])),
        stream=np.concatenate((traced.stream, snapshot.segments.stream[blocks.segment[older]])),
        entries=n,
        unseen_allocs=int(is_new.sum()),
        unseen_frees=len(open_rows) - len(matched),
    )
    sizes = block_sizes(snapshot, device, trace, joined, known)
    return replace(joined, size=sizes)

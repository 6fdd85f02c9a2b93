"""One moment of a recording: who held how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.groups import By, Group, groups_of
from vramscope_analysis.moments.recorded_memory import RecordedMemory

MOST_ROWS: Final = 200
MOST_BLOCKS: Final = 50


@dataclass(frozen=True)
class Held:
    """What a group held at a moment."""

    group: Group
    bytes: int
    blocks: int


@dataclass(frozen=True)
class LiveBlock:
    """One block that was live.

    Args:
        address: where it begins.
        size_bytes: what it takes.
        requested_bytes: what was asked for.
        label: of its source.
        category: what it is for.
        born: entry that allocated it; -1: before the first one.
        age_us: how long it had been live; None where that is not known.
        is_pending: freed already, and still in use by another stream.
    """

    address: int
    size_bytes: int
    requested_bytes: int
    label: str
    category: Category
    born: int
    age_us: int | None
    is_pending: bool


@dataclass(frozen=True)
class Moment:
    """A moment in numbers. Bytes are what blocks take, as the allocator's counters have them.

    Args:
        moment: the entry after which it is; -1 is before the first.
        time_us: of that entry; None before the first one, or without times.
        live_bytes: all live blocks (``active_bytes``).
        requested_bytes: what was asked for of these (``requested_bytes``).
        pending_bytes: of the live ones, what is freed and waits for another stream.
        before_bytes: of the live ones, what was allocated before the first entry.
        reserved_bytes: segments.
        blocks: number of live blocks.
        by_stack: largest first; beyond ``MOST_ROWS`` the rest is only in the total.
        by_line: the same by the user's line.
        by_category: in the order of the categories.
        by_size: from small to large.
        largest: blocks, largest first.
    """

    moment: int
    time_us: int | None
    live_bytes: int
    requested_bytes: int
    pending_bytes: int
    before_bytes: int
    reserved_bytes: int
    blocks: int
    by_stack: list[Held]
    by_line: list[Held]
    by_category: list[Held]
    by_size: list[Held]
    largest: list[LiveBlock]


def moment_of(memory: RecordedMemory, moment: int) -> Moment:
    """What was live after an entry."""
    moment = memory.clamped(moment)
    lifetimes = memory.lifetimes
    rows = lifetimes.live_at(moment)
    pending = lifetimes.freed[rows] <= moment
    size = lifetimes.size[rows]
    return Moment(
        moment=moment,
        time_us=_time(memory, moment),
        live_bytes=int(size.sum()),
        requested_bytes=int(lifetimes.requested[rows].sum()),
        pending_bytes=int(size[pending].sum()),
        before_bytes=int(size[lifetimes.born[rows] < 0].sum()),
        reserved_bytes=int(memory.reserved_bytes[moment + 1]),
        blocks=len(rows),
        by_stack=_held(memory, "stack", rows),
        by_line=_held(memory, "line", rows),
        by_category=_held(memory, "category", rows, ordered=False),
        by_size=_held(memory, "size", rows, ordered=False),
        largest=_largest(memory, rows, pending, moment),
    )


def _time(memory: RecordedMemory, moment: int) -> int | None:
    if moment < 0 or not memory.time_us[moment]:
        return None
    return int(memory.time_us[moment])


def _held(
    memory: RecordedMemory, by: By, rows: NDArray[np.intp], *, ordered: bool = True
) -> list[Held]:
    index, groups = groups_of(memory, by)
    of_rows = index[rows]
    held = np.bincount(of_rows, memory.lifetimes.size[rows], len(groups)).astype(np.int64)
    blocks = np.bincount(of_rows, minlength=len(groups))
    order = np.argsort(-held, kind="stable") if ordered else np.arange(len(groups))
    order = order[held[order] > 0][:MOST_ROWS]
    chosen: list[int] = order.tolist()
    return [Held(groups[i], int(held[i]), int(blocks[i])) for i in chosen]


def _largest(
    memory: RecordedMemory, rows: NDArray[np.intp], pending: NDArray[np.bool_], moment: int
) -> list[LiveBlock]:
    lifetimes = memory.lifetimes
    order = np.argsort(-lifetimes.size[rows], kind="stable")[:MOST_BLOCKS]
    now = _time(memory, moment)
    blocks: list[LiveBlock] = []
    for row, is_pending in zip(rows[order].tolist(), pending[order].tolist(), strict=True):
        source = memory.sources[memory.source_of[row]]
        born = int(lifetimes.born[row])
        began = _time(memory, born)
        blocks.append(
            LiveBlock(
                address=int(lifetimes.address[row]),
                size_bytes=int(lifetimes.size[row]),
                requested_bytes=int(lifetimes.requested[row]),
                label=source.label,
                category=source.category,
                born=born,
                age_us=None if now is None or began is None else now - began,
                is_pending=is_pending,
            )
        )
    return blocks

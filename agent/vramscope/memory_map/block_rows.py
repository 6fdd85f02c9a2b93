"""Rows of a frame for the blocks of a segment: one a block, or one a kind where there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from vramscope.memory_map.look import FREE_STATE, First, SegmentState
from vramscope_protocol.map_columns import FREE, STATES

_MAX_FRAMES: Final = 24
"""Innermost frames of a stack that are told."""
_MAX_STEP: Final = 2**31 - 1

Columns = tuple[list[Any], ...]
"""The fields of :class:`BlockRow`, each over all blocks."""
OwnerOf = Callable[[int], "tuple[int, str]"]
"""Category and name by address."""


class BlockRow(NamedTuple):
    """One row of the table of blocks, in the order of its columns; texts not yet numbers."""

    size: int
    requested: int
    state: int
    category: int
    owner: str
    stack: str
    first_step: int
    first_ms: int
    together: int


def addresses(state: SegmentState) -> Iterator[int]:
    """Where each block of a segment begins."""
    return accumulate((block[0] for block in state.blocks[:-1]), initial=state.address)


def owners(state: SegmentState, owner_of: OwnerOf) -> list[tuple[int, str]]:
    """Category and name of each block; a free one has none."""
    nobody = (0, "")
    return [
        nobody if block[2] == FREE_STATE else owner_of(address)
        for address, block in zip(addresses(state), state.blocks, strict=True)
    ]


def columns(state: SegmentState, owned_by: Sequence[tuple[int, str]]) -> Columns:
    """One value a block for each field of a row; by columns, because there may be many blocks."""
    blocks, firsts, stacks = state.blocks, state.firsts, state.stacks
    return (
        [block[0] for block in blocks],
        # A free block tells what was asked for before it was freed, or nothing.
        [0 if block[2] == FREE_STATE else block[1] for block in blocks],
        [STATES.get(block[2], FREE) for block in blocks],
        [owner[0] for owner in owned_by],
        [owner[1] for owner in owned_by],
        [""] * len(blocks)
        if stacks is None
        else [stack_text(frames) if frames else "" for frames in stacks],
        [min(first[0], _MAX_STEP) for first in firsts],
        [first[1] for first in firsts],
        [1] * len(blocks),
    )


def grouped_columns(state: SegmentState, owned_by: Sequence[tuple[int, str]]) -> Columns:
    """The same with one row for all blocks of a kind."""
    rows = [BlockRow(*values) for values in zip(*columns(state, owned_by), strict=True)]
    return tuple([list(column) for column in zip(*grouped(rows), strict=True)])


def grouped(blocks: Sequence[BlockRow]) -> list[BlockRow]:
    """One row for all blocks of a state and category, in use first: where they lie is lost."""
    groups: dict[tuple[bool, int, int], list[BlockRow]] = {}
    for row in blocks:
        groups.setdefault((row.state == FREE, row.state, row.category), []).append(row)
    return [_as_one(groups[key]) for key in sorted(groups)]


def _as_one(blocks: Sequence[BlockRow]) -> BlockRow:
    first: First = min((row.first_step, row.first_ms) for row in blocks)
    owner = blocks[0].owner if len(blocks) == 1 else ""
    stack = blocks[0].stack if len({row.stack for row in blocks}) == 1 else ""
    return BlockRow(
        sum(row.size for row in blocks),
        sum(row.requested for row in blocks),
        blocks[0].state,
        blocks[0].category,
        owner,
        stack,
        *first,
        sum(row.together for row in blocks),
    )


def stack_text(frames: Sequence[dict[str, object]]) -> str:
    """A stack as lines of "file:line function", innermost first."""
    return "\n".join(
        f"{frame.get('filename')}:{frame.get('line')} {frame.get('name')}"
        for frame in frames[:_MAX_FRAMES]
    )

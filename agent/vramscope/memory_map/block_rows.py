"""Rows of a frame for the blocks of a segment: one a block, or one a kind where there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from vramscope.memory_map.look import FREE_STATE, First, SegmentState
from vramscope_protocol.map_columns import FREE, STATES

_MAX_FRAMES: Final = 24
"""Innermost frames of a stack that are told."""
_MAX_STEP: Final = 2**31 - 1

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


def rows(state: SegmentState, owned_by: Sequence[tuple[int, str]]) -> list[BlockRow]:
    """One row a block."""
    stacks = state.stacks or [None] * len(state.blocks)
    return [
        BlockRow(
            size,
            # A free block tells what was asked for before it was freed, or nothing.
            0 if word == FREE_STATE else requested,
            STATES.get(word, FREE),
            category,
            name,
            stack_text(frames) if frames else "",
            min(first[0], _MAX_STEP),
            first[1],
            1,
        )
        for (size, requested, word), first, (category, name), frames in zip(
            state.blocks, state.firsts, owned_by, stacks, strict=True
        )
    ]


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

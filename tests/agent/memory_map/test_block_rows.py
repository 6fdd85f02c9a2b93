"""One row a block, or one a kind."""

from __future__ import annotations

from tests.support.made_segments import MIB, segment
from vramscope.memory_map.block_rows import (
    BlockRow,
    addresses,
    columns,
    grouped,
    grouped_columns,
    owners,
    stack_text,
)
from vramscope.memory_map.look import Looks, SegmentState
from vramscope_protocol.map_columns import ALLOCATED, FREE, PENDING_FREE

HERE = 0x7F0000000000


def state(words: str) -> SegmentState:
    looks = Looks()
    look = looks.take([segment(HERE, words)], time_ns=0, step=1, is_step_end=True)
    return look.segments[HERE]


def rows(made: SegmentState, owned_by: list[tuple[int, str]]) -> list[BlockRow]:
    return [BlockRow(*values) for values in zip(*columns(made, owned_by), strict=True)]


def test_owners_are_asked_by_address_and_not_for_what_is_free() -> None:
    asked: list[int] = []

    def owner_of(address: int) -> tuple[int, str]:
        asked.append(address - HERE)
        return 1, f"weight {len(asked)}"

    segment_state = state("a1 f2 p1")
    assert [each - HERE for each in addresses(segment_state)] == [0, MIB, 3 * MIB]
    assert owners(segment_state, owner_of) == [(1, "weight 1"), (0, ""), (1, "weight 2")]
    assert asked == [0, 3 * MIB]


def test_each_block_has_a_row() -> None:
    made = rows(state("a1 f2 p1"), [(3, "exp_avg"), (0, ""), (0, "")])
    assert [row.state for row in made] == [ALLOCATED, FREE, PENDING_FREE]
    assert [row.size for row in made] == [MIB, 2 * MIB, MIB]
    assert [row.requested for row in made] == [MIB - 8, 0, MIB - 8]
    assert [(row.category, row.owner) for row in made] == [(3, "exp_avg"), (0, ""), (0, "")]
    assert {row.together for row in made} == {1}


def test_grouped_rows_fill_the_same_segment() -> None:
    words = "a1 f2 a3 p1 a2 f1"
    owned = [(1, "w"), (0, ""), (2, "g"), (0, ""), (1, "v"), (0, "")]
    made = grouped(rows(state(words), owned))
    assert [(row.state, row.category, row.size, row.together) for row in made] == [
        (ALLOCATED, 1, 3 * MIB, 2),
        (ALLOCATED, 2, 3 * MIB, 1),
        (PENDING_FREE, 0, MIB, 1),
        (FREE, 0, 3 * MIB, 2),
    ]
    again = grouped_columns(state(words), owned)
    assert list(map(tuple, zip(*again, strict=True))) == list(map(tuple, made))
    # A name stays only where it is of one block.
    assert [row.owner for row in made] == ["", "g", "", ""]


def test_a_stack_is_a_text_of_its_innermost_frames() -> None:
    frames: list[dict[str, object]] = [
        {"filename": f"f{i}.py", "line": i, "name": f"n{i}"} for i in range(40)
    ]
    text = stack_text(frames)
    assert text.startswith("f0.py:0 n0\nf1.py:1 n1\n")
    assert len(text.splitlines()) == 24

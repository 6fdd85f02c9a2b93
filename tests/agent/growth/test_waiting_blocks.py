"""What waits for another stream is told by the lines that allocated it, where it matters."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope.growth.waiting_blocks import LEAST_BYTES, MAX_GROUPS, MAX_LOOKS, WaitingBlocks

MIB = 1 << 20


def block(size: int, line: int = 0, state: str = "active_pending_free") -> dict[str, Any]:
    frames = [{"filename": "train.py", "line": line, "name": "main"}] if line else []
    return {"address": 0, "size": size, "requested_size": size, "state": state, "frames": frames}


def segment(*blocks: dict[str, Any], stream: int = 0) -> dict[str, Any]:
    return {"stream": stream, "blocks": list(blocks)}


def stats(allocated: int, waiting: int) -> dict[str, Any]:
    sizes = {"allocated_bytes": allocated, "active_bytes": allocated + waiting}
    return {name: {"all": {"current": size}} for name, size in sizes.items()}


def lines(blocks: WaitingBlocks) -> list[tuple[int, int, int, int]]:
    """Line, bytes, count and stream of each group."""
    return [(each.stack[0].line, each.bytes, each.count, each.stream) for each in blocks.groups]


@pytest.mark.parametrize("state", ["active_pending_free", "active_awaiting_free"])
def test_by_line_and_stream_the_largest_first(state: str) -> None:
    blocks = WaitingBlocks()
    blocks.take(
        [
            segment(block(10 * MIB, 7, state), block(90 * MIB, 8, "active_allocated")),
            segment(block(20 * MIB, 7, state), block(50 * MIB, 9, "inactive")),
            segment(block(24 * MIB, 7, state), block(40 * MIB, 5, state), stream=3),
        ]
    )
    assert lines(blocks) == [
        (5, 40 * MIB, 1, 3),
        (7, 30 * MIB, 2, 0),
        (7, 24 * MIB, 1, 3),
    ]


def test_what_was_allocated_before_stacks_were_recorded_is_not_told() -> None:
    blocks = WaitingBlocks()
    blocks.take([segment(block(100 * MIB), block(10 * MIB, 7))])
    assert lines(blocks) == [(7, 10 * MIB, 1, 0)]


def test_the_moment_at_which_most_waited_is_kept() -> None:
    blocks = WaitingBlocks()
    for count in (2, 5, 1):
        blocks.take([segment(*[block(10 * MIB, 7)] * count)])
    assert lines(blocks) == [(7, 50 * MIB, 5, 0)]


def test_little_is_left_out_and_there_are_only_so_many() -> None:
    blocks = WaitingBlocks()
    blocks.take([segment(block(LEAST_BYTES - 512, 1), block(LEAST_BYTES, 2))])
    assert lines(blocks) == [(2, LEAST_BYTES, 1, 0)]
    blocks = WaitingBlocks()
    blocks.take([segment(*(block((100 + line) * MIB, line) for line in range(1, 20)))])
    assert [line for line, *_ in lines(blocks)] == list(range(19, 19 - MAX_GROUPS, -1))


def test_a_look_is_worth_it_when_clearly_more_waits() -> None:
    blocks = WaitingBlocks()
    assert not blocks.are_more(None)
    assert not blocks.are_more(stats(0, LEAST_BYTES - 1))
    assert blocks.are_more(stats(0, LEAST_BYTES))
    assert not blocks.are_more(stats(1000 * MIB, 10 * MIB))
    blocks.take([segment(block(40 * MIB, 7))])
    assert not blocks.are_more(stats(0, 45 * MIB))
    assert blocks.are_more(stats(0, 60 * MIB))


def test_looks_for_it_come_to_an_end() -> None:
    blocks = WaitingBlocks()
    looks = 0
    while blocks.are_more(stats(0, 100 * MIB)):
        blocks.take([segment(block(100 * MIB))])  # from before the recording
        looks += 1
    assert looks == MAX_LOOKS

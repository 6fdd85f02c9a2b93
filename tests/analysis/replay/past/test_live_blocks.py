from __future__ import annotations

import pytest

from tests.support.made_recordings import BASE, MIB, block, entry, recording_of, segment
from vramscope_analysis.replay.past.live_blocks import LiveBlock, live_blocks

ENTRIES = [
    entry("alloc", 512, 300, 7),
    entry("free_requested", 512, 300, 7),
    entry("free_completed", 512, 300, 7),
    entry("alloc", 512, 200, 7),
    entry("free_requested", 0, 100, 7),
]
RECORDING = recording_of(
    ENTRIES,
    [
        segment(
            0,
            [
                block(512, 100, "active_pending_free"),
                block(512, 200),
                block(2 * MIB - 1024),
            ],
            stream=7,
            pool_id=(3, 1),
            is_small=True,
        )
    ],
    stacks=[4, 5, 6, 8, 9],
)


def at(position: int) -> dict[int, LiveBlock]:
    return {block.address - BASE: block for block in live_blocks(RECORDING, position)}


def test_blocks_of_the_end() -> None:
    assert live_blocks(RECORDING, 5) == [
        LiveBlock(
            address=BASE,
            size_bytes=512,
            requested_bytes=100,
            stream=7,
            pool_id=(3, 1),
            is_pending=True,
            allocated_at=-1,
            freed_at=5,
            stack=-1,
        ),
        LiveBlock(
            address=BASE + 512,
            size_bytes=512,
            requested_bytes=200,
            stream=7,
            pool_id=(3, 1),
            is_pending=False,
            allocated_at=3,
            freed_at=5,
            stack=8,
        ),
    ]


def test_each_moment_has_its_blocks() -> None:
    assert list(at(0)) == [0]
    assert list(at(1)) == [0, 512]
    assert list(at(3)) == [0]
    assert list(at(4)) == [0, 512]


def test_a_block_knows_its_entries_and_its_stack() -> None:
    first, second = at(1)[512], at(4)[512]
    assert (first.allocated_at, first.freed_at, first.stack) == (0, 2, 4)
    assert (second.allocated_at, second.freed_at, second.stack) == (3, 5, 8)
    assert (first.requested_bytes, second.requested_bytes) == (300, 200)


def test_a_block_is_pending_from_its_request_on() -> None:
    assert not at(1)[512].is_pending
    assert at(2)[512].is_pending
    assert [at(position)[0].is_pending for position in (4, 5)] == [False, True]


def test_positions_lie_in_the_recording() -> None:
    with pytest.raises(ValueError, match="expected a position from 0 to 5, got 6"):
        live_blocks(RECORDING, 6)

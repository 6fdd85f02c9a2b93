"""A frame is bounded, whatever the map is like."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_segments import MIB, many_segments
from vramscope.memory_map.detail import MAX_BLOCKS, detail_for, summary
from vramscope.memory_map.look import Looks, SegmentState

ROOM = 900_000


def segments(count: int, blocks: int, **more: Any) -> dict[int, SegmentState]:
    look = Looks().take(many_segments(count, blocks, **more), time_ns=0, step=1, is_step_end=True)
    return dict(look.segments)


def test_what_fits_is_whole() -> None:
    whole = segments(10, MAX_BLOCKS // 10)
    detail = detail_for(whole, ROOM)
    assert all(detail.is_shown(state) and detail.is_whole(state) for state in whole.values())
    assert summary(whole, detail) == ""


def test_the_small_pool_is_summed_up_first() -> None:
    small = segments(20, 1000, segment_type="small")
    large = {address + (1 << 40): state for address, state in segments(5, 400).items()}
    both = small | large
    detail = detail_for(both, ROOM)
    assert not any(detail.is_whole(state) for state in small.values())
    assert all(detail.is_whole(state) for state in large.values())
    assert summary(both, detail) == ("20,000 blocks of 20 segments are shown as one of each kind")


def test_then_large_segments_with_the_most_blocks() -> None:
    dense, sparse = segments(20, 1500), segments(100, 20)
    both = dense | {address + (1 << 41): state for address, state in sparse.items()}
    detail = detail_for(both, ROOM)
    assert not any(detail.is_whole(state) for state in dense.values())
    assert all(detail.is_whole(state) for state in sparse.values())


def test_too_many_segments_leave_the_smallest_out() -> None:
    many = segments(20_000, 1)
    big = segments(1, 300)
    both = {address + (1 << 42): state for address, state in big.items()} | many
    detail = detail_for(both, ROOM)
    shown = [state.size for state in both.values() if detail.is_shown(state)]
    assert max(shown) == 150 * MIB
    assert len(shown) == ROOM // (53 + 6 * 42)
    left_out = len(both) - len(shown)
    assert summary(both, detail).endswith(
        f"{left_out:,} small segments ({left_out // 2:,} MiB) are left out"
    )


@pytest.mark.parametrize(("count", "blocks"), [(1, 50_000), (50, 1000), (3000, 8), (20_000, 1)])
def test_every_map_fits(count: int, blocks: int) -> None:
    made = segments(count, blocks)
    detail = detail_for(made, ROOM)
    shown = [state for state in made.values() if detail.is_shown(state)]
    rows = sum(len(s.blocks) if detail.is_whole(s) else 6 for s in shown)
    assert rows <= MAX_BLOCKS
    assert len(shown) * 53 + rows * 42 <= ROOM

"""Free memory is cut up as it lies: pieces, what they could be, and what can go back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.made_layouts import MIB, made_layout
from tests.support.made_moments import recorded
from vramscope_analysis.evidence.window_layout import window_layout


def test_pieces_of_a_segment_are_those_between_its_live_blocks() -> None:
    layout = made_layout("f2 a4 f6 s1 f7", "a3 a5", "f12")
    (pool,) = layout.pools
    assert (pool.reserved_bytes, pool.free_bytes, pool.live_bytes) == (
        40 * MIB,
        27 * MIB,
        13 * MIB,
    )
    assert (pool.pieces, pool.largest_bytes) == (4, 12 * MIB)
    assert pool.returnable_bytes == 12 * MIB


def test_what_could_be_whole_is_what_lies_between_blocks_that_stay() -> None:
    (pool,) = made_layout("f2 a4 f6 s1 f7", "s3 f5").pools
    assert (pool.largest_bytes, pool.between_bytes) == (7 * MIB, 12 * MIB)


def test_pools_and_streams_have_nothing_of_each_other() -> None:
    layout = made_layout(
        ("large", 0, "s8 f2"), ("large", 7, "f32"), ("small", 0, "a1 f1"), ("private", 0, "a1 f63")
    )
    assert [(pool.pool, pool.stream, pool.free_bytes // MIB) for pool in layout.pools] == [
        ("private", 0, 63),
        ("large", 7, 32),
        ("large", 0, 2),
        ("small", 0, 1),
    ]
    assert (layout.free_bytes, layout.largest_bytes) == (35 * MIB, 32 * MIB)
    assert (layout.returnable_bytes, layout.main_stream) == (32 * MIB, 0)


def test_a_segment_is_pinned_where_nothing_in_it_goes() -> None:
    layout = made_layout("s1 f39", "s1 a1 f38", "a4 f36", ("private", 0, "s1 f9"))
    assert layout.pinned_bytes == 39 * MIB
    (pin,) = layout.pins
    assert (pin.name, pin.blocks, pin.live_bytes, pin.pinned_bytes) == (
        "fc.weight",
        1,
        MIB,
        39 * MIB,
    )


def test_of_an_expandable_segment_whole_pages_go_back_and_none_is_pinned() -> None:
    (pool,) = made_layout("s1 f8 s1 f6", page_bytes=2 * MIB).pools
    # From 1 to 9 MiB there are three whole pages, from 10 to 16 three.
    assert (pool.returnable_bytes, pool.pinned_bytes, pool.is_expandable) == (12 * MIB, 0, True)


def test_nothing_has_no_layout() -> None:
    layout = made_layout()
    assert (layout.pools, layout.free_bytes, layout.main_stream) == ((), 0, None)
    assert made_layout("f4").pool_of("large", 1) is None


@pytest.mark.parametrize(
    "name", ["varlen__default", "streams__expandable", "cuda_graphs__default", "pools__default"]
)
def test_of_recorded_jobs_nothing_is_lost_or_counted_twice(name: str) -> None:
    memory = recorded(name)
    moment = int(np.argmax(memory.reserved_bytes)) - 1
    layout = window_layout(memory, moment)
    assert layout.reserved_bytes == memory.reserved_bytes[moment + 1]
    free = sum(pool.free_bytes for pool in layout.pools)
    assert free == memory.reserved_bytes[moment + 1] - memory.live_bytes[moment + 1]
    for pool in layout.pools:
        assert pool.largest_bytes <= pool.between_bytes <= pool.reserved_bytes
        assert pool.pinned_bytes + pool.returnable_bytes <= pool.free_bytes

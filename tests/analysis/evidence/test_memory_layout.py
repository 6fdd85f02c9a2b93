"""A layout answers for all its pools together."""

from __future__ import annotations

from tests.support.made_layouts import MIB, made_layout
from vramscope_analysis.evidence.memory_layout import MemoryLayout


def test_the_main_stream_is_the_one_with_most_in_use_not_with_most_free() -> None:
    layout = made_layout(("large", 3, "a9 f1"), ("small", 3, "a1 f1"), ("large", 5, "a8 f90"))
    assert layout.main_stream == 3
    assert layout.pool_of("large", 5) == layout.pools[0]


def test_private_pools_count_as_reserved_and_serve_nobody() -> None:
    layout = made_layout(("private", 0, "f50"), ("large", 0, "a4 f6"))
    assert layout.reserved_bytes == 60 * MIB
    assert (layout.free_bytes, layout.largest_bytes, layout.returnable_bytes) == (
        6 * MIB,
        6 * MIB,
        0,
    )
    assert [pool.pool for pool in layout.shared] == ["large"]


def test_without_pools_there_is_nothing() -> None:
    assert MemoryLayout(()).main_stream is None
    assert MemoryLayout(()).largest_bytes == 0

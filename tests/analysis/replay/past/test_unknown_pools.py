from __future__ import annotations

import dataclasses

from tests.support.made_recordings import BASE, MIB, block, entry, recording_of, segment
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.replay.past.held_memory import HeldSegment
from vramscope_analysis.replay.past.unknown_pools import UnknownPools

PLAIN = HeldSegment(BASE, 20 * MIB, 7, None, None, False, 5)
PAGES = dataclasses.replace(PLAIN, is_expandable=True)
DEFAULT, PRIVATE = (0, 0), (1, 0)


def of_the_end(stream: int, pool_id: tuple[int, int]) -> dict[str, object]:
    return segment(stream * 100 * MIB, [block(20 * MIB)], stream=stream, pool_id=pool_id)


def test_a_segment_that_is_gone_is_of_the_default_pool() -> None:
    without_private = UnknownPools(recording_of([], [of_the_end(7, DEFAULT)]), 0)
    assert [held.pool_id for held in without_private.resolved([PLAIN, PAGES])] == [DEFAULT] * 2
    assert without_private.guesses == 1  # whether the pages are small
    with_private = UnknownPools(recording_of([], [of_the_end(7, PRIVATE)]), 0)
    assert [held.pool_id for held in with_private.resolved([PLAIN])] == [DEFAULT]
    assert with_private.guesses == 1


def test_what_is_known_stays() -> None:
    pools = UnknownPools(recording_of([], [of_the_end(7, PRIVATE)]), 0)
    known = dataclasses.replace(PAGES, pool_id=(2, 2), is_small=True)
    assert pools.resolved([known]) == [known]
    assert not pools.guesses


def test_small_segments_have_their_own_size() -> None:
    pools = UnknownPools(recording_of([]), 0)
    small = dataclasses.replace(PLAIN, size_bytes=2 * MIB)
    assert [held.is_small for held in pools.resolved([PLAIN, small])] == [False, True]
    settings = AllocatorSettings(large_segment_bytes=2 * MIB)
    pools = UnknownPools(recording_of([], settings=settings), 0)
    assert [held.is_small for held in pools.resolved([PLAIN, small])] == [False, False]
    assert not pools.guesses


def test_pages_tell_by_what_is_placed_into_them() -> None:
    entries = [
        entry("alloc", 30 * MIB, 9),
        entry("alloc", 5 * MIB, 9),
        entry("alloc", MIB, MIB + 1),
    ]
    pools = UnknownPools(recording_of(entries), 0)
    front = dataclasses.replace(PAGES, size_bytes=20 * MIB)
    back = dataclasses.replace(PAGES, address=BASE + 20 * MIB)
    assert [held.is_small for held in pools.resolved([front, back])] == [False, True]
    assert not pools.guesses


def test_pages_of_an_uneven_size_are_small() -> None:
    pools = UnknownPools(recording_of([]), 0)
    (held,) = pools.resolved([dataclasses.replace(PAGES, size_bytes=22 * MIB)])
    assert held.is_small
    assert not pools.guesses


def test_what_is_placed_at_another_time_says_nothing() -> None:
    """The addresses of a range that is gone may be those of another one before and after."""
    entries = [entry("alloc", 0, 9), entry("oom", 0, 0), entry("alloc", 0, 9)]
    pools = UnknownPools(recording_of(entries), 1)
    (held,) = pools.resolved([dataclasses.replace(PAGES, freed_at=2)])
    assert not held.is_small
    assert pools.guesses == 1
    (held,) = UnknownPools(recording_of(entries), 1).resolved(
        [dataclasses.replace(PAGES, freed_at=3)]
    )
    assert held.is_small

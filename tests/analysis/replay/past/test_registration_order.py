from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tests.support.made_recordings import BASE, MIB, Entry, entry, recording_of
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.replay.past.held_memory import HeldSegment
from vramscope_analysis.replay.past.past_blocks import PastBlock
from vramscope_analysis.replay.past.registration_order import Registrations

SIZE = 20 * MIB
POOL = (0, 0)


def held(number: int, size_bytes: int = SIZE, stream: int = 0) -> HeldSegment:
    address = BASE + number * SIZE
    return HeldSegment(address, size_bytes, stream, POOL, size_bytes < SIZE, False, None)


def live(segment: HeldSegment, offset: int, size_bytes: int, excess_bytes: int = 0) -> PastBlock:
    address = segment.address + offset
    return PastBlock(address, segment, size_bytes, size_bytes, 99, False, False, excess_bytes)


def alloc(number: int, size_bytes: int, offset: int = 0) -> Entry:
    return entry("alloc", number * SIZE + offset, size_bytes, pool_id=POOL)


def freed(number: int, size_bytes: int, offset: int = 0) -> list[Entry]:
    actions = ("free_requested", "free_completed")
    return [entry(a, number * SIZE + offset, size_bytes, pool_id=POOL) for a in actions]


def order(
    entries: Sequence[Entry],
    segments: Sequence[HeldSegment],
    blocks: Sequence[PastBlock] = (),
    settings: AllocatorSettings | None = None,
) -> list[int]:
    """Numbers of the segments, the first registered first."""
    recording = recording_of(entries, settings=settings, version=(2, 13))
    ranks = Registrations(recording, 0, segments, blocks).of_segments
    return [(address - BASE) // SIZE for address in sorted(ranks, key=ranks.__getitem__)]


THREE = [held(0), held(1), held(2)]


def test_without_choices_the_addresses_decide() -> None:
    assert order([], THREE) == [0, 1, 2]
    assert order([], []) == []


def test_of_equal_free_blocks_the_oldest_was_taken() -> None:
    assert order([alloc(2, 3 * MIB)], THREE) == [2, 0, 1]
    assert order([alloc(2, 19 * MIB + 1), alloc(1, 19 * MIB + 1)], THREE) == [2, 1, 0]


def test_blocks_of_other_sizes_streams_and_pools_are_no_choice() -> None:
    assert order([alloc(1, 3 * MIB)], [held(0, stream=7), held(1)]) == [0, 1]
    assert order([alloc(1, 3 * MIB)], [held(0, 30 * MIB), held(2)]) == [0, 2]
    assert order([alloc(1, 100)], [held(0), held(1, 2 * MIB)]) == [0, 1]
    blocks = [live(THREE[0], 0, 3 * MIB)]
    assert order([alloc(1, 3 * MIB)], THREE[:2], blocks) == [0, 1]


def test_what_is_left_of_blocks_is_followed() -> None:
    blocks = [live(THREE[0], 0, 3 * MIB), live(THREE[1], 0, 5 * MIB)]
    taken = alloc(1, 4 * MIB, 3 * MIB)
    rest = [*freed(1, 5 * MIB), alloc(1, 3 * MIB)]
    assert order([*rest, taken], THREE[:2], blocks) == [1, 0]
    joined = [*freed(0, 3 * MIB), *freed(1, 5 * MIB), alloc(1, 2 * MIB)]
    assert order(joined, THREE[:2], blocks) == [1, 0]


def test_blocks_between_free_ones_join_both() -> None:
    blocks = [live(THREE[1], 4 * MIB, 4 * MIB)]
    entries = [*freed(1, 4 * MIB, 4 * MIB), alloc(1, 2 * MIB)]
    assert order(entries, THREE[:2], blocks) == [1, 0]


def test_small_rests_stay_with_their_block() -> None:
    """The block that was taken whole leaves nothing that could be chosen later."""
    entries = [alloc(0, 19 * MIB), alloc(2, 3 * MIB)]
    assert order(entries, THREE) == [0, 2, 1]
    settings = AllocatorSettings(max_split_size_bytes=3 * MIB)
    entries = [alloc(0, 4 * MIB), alloc(2, 16 * MIB)]
    assert order(entries, THREE, settings=settings) == [0, 2, 1]


def test_a_space_of_uncertain_size_is_no_choice() -> None:
    blocks = [live(THREE[0], 0, 3 * MIB, excess_bytes=MIB), live(THREE[1], 0, 3 * MIB)]
    taken = alloc(1, 2 * MIB, 3 * MIB)
    assert order([taken], THREE[:2], blocks) == [0, 1]
    certain = [dataclasses.replace(blocks[0], excess_bytes=0), blocks[1]]
    assert order([taken], THREE[:2], certain) == [1, 0]
    # Once the block is free, the space begins where it began.
    whole = [*freed(0, 3 * MIB), *freed(1, 3 * MIB), alloc(1, 2 * MIB)]
    assert order(whole, THREE[:2], blocks) == [1, 0]


def test_a_segment_that_came_later_tells_nothing_of_the_old_one() -> None:
    again = [entry("segment_free", 0, SIZE), entry("segment_alloc", 0, SIZE), alloc(0, 3 * MIB)]
    assert order([*again, *freed(0, 3 * MIB), alloc(1, 3 * MIB)], THREE[:2]) == [0, 1]
    new = [entry("segment_alloc", 9 * SIZE, SIZE), alloc(9, 3 * MIB), *freed(9, 3 * MIB)]
    assert order([*new, alloc(1, 3 * MIB)], THREE[:2]) == [1, 0]


def test_contradictory_choices_fall_back_to_addresses() -> None:
    entries = [alloc(1, 3 * MIB), *freed(1, 3 * MIB), alloc(0, 3 * MIB)]
    assert order(entries, THREE) == [0, 1, 2]


def test_pages_are_not_looked_at() -> None:
    pages = dataclasses.replace(THREE[0], is_expandable=True)
    found = order(
        [alloc(0, 3 * MIB), alloc(7, 3 * MIB), *freed(0, 3 * MIB), *freed(1, 3 * MIB)],
        [pages, held(1)],
        [live(pages, 0, MIB)],
    )
    assert found == [1]


def test_blocks_have_an_order_of_their_own() -> None:
    """Up to 2.12 each block object counts: a part that is split off is newer than its rest."""
    blocks = [live(THREE[0], 4 * MIB, 16 * MIB), live(THREE[1], 4 * MIB, 16 * MIB)]
    recording = recording_of([alloc(1, 4 * MIB)], version=(2, 12))
    ranks = Registrations(recording, 0, THREE[:2], blocks).of_blocks
    starts = [BASE, BASE + 4 * MIB, BASE + SIZE, BASE + SIZE + 4 * MIB]
    assert sorted(starts, key=ranks.__getitem__) == [starts[1], starts[2], starts[0], starts[3]]
    # A block that is freed keeps its number when it joins what is free beside it.
    entries = [*freed(0, 16 * MIB, 4 * MIB), *freed(1, 16 * MIB, 4 * MIB), alloc(1, 20 * MIB)]
    ranks = Registrations(recording_of(entries, version=(2, 12)), 0, THREE[:2], blocks).of_blocks
    assert sorted(starts, key=ranks.__getitem__) == [starts[0], starts[2], starts[3], starts[1]]

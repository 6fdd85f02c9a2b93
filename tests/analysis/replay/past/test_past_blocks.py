from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.made_recordings import (
    BASE,
    KIB,
    MIB,
    Entry,
    block,
    entry,
    recording_of,
    segment,
)
from vramscope_analysis.allocator import AllocatorSettings, Version
from vramscope_analysis.replay.past.past_blocks import PastBlock, PastBlocks
from vramscope_analysis.replay.past.undo import Undo
from vramscope_analysis.replay.past.unknown_pools import UnknownPools

SEGMENT = 20 * MIB
PENDING = "active_pending_free"


def past(
    entries: Sequence[Entry],
    segments: Sequence[dict[str, Any]],
    settings: AllocatorSettings | None = None,
    *,
    version: Version = (2, 11),
    position: int = 0,
) -> PastBlocks:
    recording = recording_of(entries, segments, settings, version=version)
    undo = Undo(recording)
    undo.back_to(position)
    return PastBlocks(recording, undo, UnknownPools(recording, position).resolved(undo.held()))


def sizes(found: PastBlocks) -> dict[int, int]:
    assert not found.contradictions
    return {one.address - BASE: one.size_bytes for one in found.blocks}


def free(address: int, size_bytes: int) -> list[Entry]:
    return [entry(a, address, size_bytes) for a in ("free_requested", "free_completed")]


def test_a_block_of_the_end_has_the_size_that_it_has_there() -> None:
    (one,) = past([], [segment(0, [block(MIB, 5, PENDING), block(MIB)])]).blocks
    assert one == PastBlock(
        address=BASE,
        held=one.held,
        size_bytes=MIB,
        requested_bytes=5,
        freed_at=0,
        is_pending=True,
        is_recorded=True,
        excess_bytes=0,
    )
    assert (one.held.address, one.held.end) == (BASE, BASE + 2 * MIB)


def test_small_blocks_are_always_split_to_size() -> None:
    found = past(free(0, 100), [segment(0, [block(2 * MIB)], is_small=True)])
    assert sizes(found) == {0: 512}
    (one,) = found.blocks
    assert (one.freed_at, one.is_pending, one.is_recorded, one.excess_bytes) == (1, False, False, 0)


def test_so_are_blocks_in_expandable_segments() -> None:
    settings = AllocatorSettings(expandable_segments=True)
    end = [segment(0, [block(4 * MIB)], is_expandable=True)]
    assert sizes(past(free(0, 3 * MIB + 1), end, settings)) == {0: 3 * MIB + 512}


def test_a_rest_of_up_to_1_mib_stays_with_its_block() -> None:
    for rest_bytes in (0, 512, MIB):
        found = past(free(0, SEGMENT - rest_bytes), [segment(0, [block(SEGMENT)])])
        assert sizes(found) == {0: SEGMENT}
        assert not found.blocks[0].excess_bytes


def test_a_rest_ends_where_a_live_block_begins() -> None:
    end = [segment(0, [block(4 * MIB), block(16 * MIB, 16 * MIB)])]
    assert sizes(past(free(0, 3 * MIB), end)) == {0: 4 * MIB, 4 * MIB: 16 * MIB}


def test_a_rest_ends_where_a_block_is_placed_meanwhile() -> None:
    placed = [entry("alloc", 4 * MIB, 5 * MIB), *free(4 * MIB, 5 * MIB)]
    end = [segment(0, [block(SEGMENT)])]
    assert sizes(past([*placed, *free(0, 3 * MIB)], end)) == {0: 4 * MIB}
    # What comes after the block's end says nothing.
    after = past([*free(0, 3 * MIB), *placed], end)
    assert sizes(after) == {0: 3 * MIB}
    assert after.blocks[0].excess_bytes == MIB


def test_a_block_placed_right_behind_makes_the_size_certain() -> None:
    placed = [entry("alloc", 3 * MIB, 5 * MIB), *free(3 * MIB, 5 * MIB), *free(0, 3 * MIB)]
    found = past(placed, [segment(0, [block(SEGMENT)])])
    assert sizes(found) == {0: 3 * MIB}
    assert not found.blocks[0].excess_bytes


def test_a_size_is_uncertain_where_nothing_is_near() -> None:
    found = past(free(0, 3 * MIB), [segment(0, [block(SEGMENT)])])
    assert sizes(found) == {0: 3 * MIB}
    assert found.blocks[0].excess_bytes == MIB


def test_a_free_rest_is_larger_than_1_mib() -> None:
    """Of 1.5 MiB up to the next block, less than 0.5 MiB may belong to the block before."""
    end = [segment(0, [block(3 * MIB + 1536 * KIB), block(5 * MIB, 5 * MIB)])]
    found = past(free(0, 3 * MIB), end)
    assert sizes(found)[0] == 3 * MIB
    assert found.blocks[0].excess_bytes == 512 * KIB - 512


def test_requests_are_rounded_as_the_settings_say() -> None:
    settings = AllocatorSettings(roundup_power2_divisions=(4,) * 16)
    assert sizes(past(free(0, 9 * MIB), [segment(0, [block(SEGMENT)])], settings)) == {0: 10 * MIB}


def test_oversize_blocks_are_never_split() -> None:
    settings = AllocatorSettings(max_split_size_bytes=32 * MIB)
    end = [segment(0, [block(50 * MIB)])]
    found = past(free(0, 33 * MIB), end, settings)
    assert sizes(found) == {0: 50 * MIB}
    assert not found.blocks[0].excess_bytes
    assert sizes(past(free(0, 31 * MIB), end, settings)) == {0: 31 * MIB}


@pytest.mark.parametrize(
    ("pool_id", "version", "size_bytes"),
    [((0, 0), (2, 11), 3 * MIB), ((1, 0), (2, 11), 4 * MIB), ((1, 0), (2, 9), 3 * MIB)],
)
def test_plain_blocks_are_split_finely_where_segments_may_expand(
    pool_id: tuple[int, int], version: Version, size_bytes: int
) -> None:
    settings = AllocatorSettings(expandable_segments=True)
    end = [segment(0, [block(4 * MIB), block(16 * MIB, 16 * MIB)], pool_id=pool_id)]
    found = past(free(0, 3 * MIB), end, settings, version=version)
    assert sizes(found)[0] == size_bytes
    assert not found.blocks[0].excess_bytes


def test_a_block_placed_after_the_last_entry_was_not_there() -> None:
    """The end shows blocks that overlap what the entries say was live."""
    end = [segment(0, [block(6 * MIB, 6 * MIB), block(14 * MIB, 14 * MIB)])]
    before = past([*free(4 * MIB, 4 * MIB)], end)
    assert [one.address - BASE for one in before.blocks] == [4 * MIB]
    assert before.contradictions == {"unseen_allocs": 2}
    meanwhile = past([entry("alloc", 4 * MIB, MIB), *free(4 * MIB, MIB)], end)
    assert [one.address - BASE for one in meanwhile.blocks] == [6 * MIB]
    assert meanwhile.contradictions == {"unseen_allocs": 1}


def test_blocks_need_a_segment() -> None:
    end = [segment(0, [block(SEGMENT, 9)])]
    late = past([entry("segment_alloc", 0, SEGMENT)], end)
    assert not late.blocks
    assert late.contradictions == {"unseen_allocs": 1}
    gone = past([*free(SEGMENT, 9), *free(SEGMENT - 512, 1024)], end)
    assert [one.address - BASE for one in gone.blocks] == [0]
    assert gone.contradictions == {"unseen_segments": 2}


def test_blocks_of_entries_that_overlap_are_impossible() -> None:
    found = past([*free(0, 4 * MIB), *free(2 * MIB, 4 * MIB)], [segment(0, [block(SEGMENT)])])
    assert [one.address - BASE for one in found.blocks] == [0]
    assert found.contradictions == {"impossible": 1}
    inside = past(
        [entry("alloc", MIB, 2 * MIB), *free(MIB, 2 * MIB), *free(0, 4 * MIB)],
        [segment(0, [block(SEGMENT)])],
    )
    assert [one.address - BASE for one in inside.blocks] == [0]
    assert inside.contradictions == {"impossible": 1}


def test_a_block_ends_at_the_next_one_whatever_the_settings_say() -> None:
    """The rounding may have been another when the block was handed out."""
    settings = AllocatorSettings(roundup_power2_divisions=(2,) * 16)
    end = [segment(0, [block(10 * MIB), block(10 * MIB, 10 * MIB)])]
    found = past(free(0, 9 * MIB), end, settings)
    assert found.blocks[0].size_bytes == 10 * MIB
    assert found.contradictions == {"misfits": 1}


def test_later_positions_count_what_came_before() -> None:
    entries = [entry("alloc", 0, 3 * MIB), *free(0, 3 * MIB)]
    found = past(entries, [segment(0, [block(SEGMENT)])], position=2)
    assert sizes(found) == {0: 3 * MIB}
    assert found.blocks[0].is_pending
    assert sizes(past(entries, [segment(0, [block(SEGMENT)])], position=3)) == {}

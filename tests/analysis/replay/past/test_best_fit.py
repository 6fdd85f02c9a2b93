from __future__ import annotations

from collections.abc import Sequence

from tests.support.made_recordings import BASE, KIB, MIB, Entry, entry, recording_of, segment
from tests.support.made_recordings import block as block_of
from vramscope_analysis.allocator import AllocatorSettings, Version
from vramscope_analysis.replay.past.best_fit import narrow
from vramscope_analysis.replay.past.held_memory import HeldSegment
from vramscope_analysis.replay.past.uncertain_block import UncertainBlock

FREED_AT = 99
ANY_CALL = (entry("free_requested", 0, 512),)
POOL = (0, 0)

# One segment from 20 MiB on. An uncertain block of 4 MiB begins it, 3 MiB up to 1 MiB less are
# free behind it, then come a live block and 5 MiB that are free.
UNCERTAIN = 20 * MIB
LIVE = UNCERTAIN + 7 * MIB
FREE = LIVE + 8 * MIB
SEGMENT = HeldSegment(BASE + UNCERTAIN, 20 * MIB, 0, POOL, False, False, None)


def uncertain() -> UncertainBlock:
    return UncertainBlock(BASE + UNCERTAIN, 4 * MIB, FREED_AT, (0, POOL), 3 * MIB, MIB)


def kept(
    entries: Sequence[Entry],
    settings: AllocatorSettings | None = None,
    *,
    others: Sequence[HeldSegment] = (),
    version: Version = (2, 11),
) -> tuple[int, int]:
    """Least and most that the uncertain block kept, in 512 B, after narrowing by these entries."""
    end = [segment(0, [block_of(512)], pool_id=POOL)]
    rest = [entry("oom", 0, 0)] * (FREED_AT - len(entries))
    freed = [entry("free_completed", UNCERTAIN, 4 * MIB)]
    recording = recording_of([*entries, *rest, *freed], end, settings, version=version)
    held = sorted([SEGMENT, *others], key=lambda one: one.address)
    one = uncertain()
    narrow(recording, 0, held, [BASE + UNCERTAIN, BASE + LIVE], [one])
    least, most = one.kept_bytes()
    return least // 512, most // 512


def test_the_block_that_was_taken_was_the_best_fit() -> None:
    """5 MiB served a request: the space was smaller than the request."""
    assert kept([entry("alloc", FREE, 2560 * KIB)]) == (1025, 2048)
    assert kept([entry("alloc", FREE, 3 * MIB)]) == (1, 2048)
    assert kept([entry("alloc", FREE, 3 * MIB + 1)]) == (0, 2048)
    assert kept([entry("alloc", FREE, 2 * MIB)]) == (0, 2048)


def test_a_smaller_block_says_that_the_space_was_not_smaller_still() -> None:
    other = HeldSegment(BASE + 60 * MIB, 2560 * KIB, 0, POOL, False, False, None)
    taken = [entry("alloc", 60 * MIB, 1536 * KIB)]
    # Of equal blocks the lower one is taken, up to torch 2.11: then it was not equal either.
    assert kept(taken, others=[other]) == (0, 1023)
    assert kept(taken, others=[other], version=(2, 12)) == (0, 1024)
    lower = HeldSegment(BASE, 2560 * KIB, 0, POOL, False, False, None)
    assert kept([entry("alloc", 0, 1536 * KIB)], others=[lower]) == (0, 1024)


def test_only_requests_of_the_same_stream_and_pool_count() -> None:
    for stream, pool_id in ((7, POOL), (0, (1, 0))):
        other = HeldSegment(BASE + 60 * MIB, 20 * MIB, stream, pool_id, False, False, None)
        assert kept([entry("alloc", 60 * MIB, 3 * MIB, stream, pool_id)], others=[other]) == (
            0,
            2048,
        )


def test_the_space_grows_when_the_block_behind_it_is_freed() -> None:
    freed = entry("free_completed", LIVE, 8 * MIB)
    other = HeldSegment(BASE + 60 * MIB, 20 * MIB, 0, POOL, False, False, None)
    refused = entry("alloc", 60 * MIB, 15 * MIB + 512 * KIB)
    assert kept([freed, refused], others=[other]) == (1025, 2048)
    assert kept([refused, freed], others=[other]) == (0, 2048)
    small = entry("free_completed", LIVE, 8 * KIB)
    assert kept([small, refused], others=[other]) == (0, 2048)


def test_after_the_block_is_free_nothing_counts() -> None:
    entries = [entry("free_completed", UNCERTAIN, 4 * MIB), entry("alloc", FREE, 2560 * KIB)]
    recording = recording_of(entries, [segment(0, [block_of(512)])])
    one = UncertainBlock(BASE + UNCERTAIN, 4 * MIB, 0, (0, POOL), 3 * MIB, MIB)
    narrow(recording, 0, [SEGMENT], [BASE + UNCERTAIN, BASE + LIVE], [one])
    assert one.kept_bytes() == (0, MIB)


def new_segment(size_bytes: int, before: Sequence[Entry] = ANY_CALL) -> list[Entry]:
    return [
        *before,
        entry("segment_alloc", 60 * MIB, 20 * MIB),
        entry("alloc", 60 * MIB, size_bytes),
    ]


def test_a_new_segment_says_that_the_space_was_too_small() -> None:
    assert kept(new_segment(2560 * KIB)) == (1025, 2048)
    assert kept(new_segment(5 * MIB)) == (0, 2048)


def test_an_oversize_space_is_refused_however_large() -> None:
    settings = AllocatorSettings(max_split_size_bytes=2560 * KIB)
    # Smaller than that it could have served, so it was not; larger it must not.
    assert kept(new_segment(2 * MIB), settings) == (0, 1024)
    # An oversize request takes no block that is larger by more than the permitted rounding.
    settings = AllocatorSettings(
        max_split_size_bytes=2 * MIB,
        max_non_split_rounding_bytes=512 * KIB,
        large_segment_bytes=512 * KIB,
    )
    assert kept(new_segment(2 * MIB), settings) == (0, 1024)


def test_a_release_between_search_and_new_segment_leaves_it_open() -> None:
    """The search came first: what is free when the segment comes need not have been free then."""
    # Freed by the flush before the segment was asked for: 16 MiB less what the block kept.
    waited_for = [entry("free_completed", LIVE, 8 * MIB)]
    released = [*waited_for, entry("segment_free", 90 * MIB, 20 * MIB)]
    large = 15 * MIB + 512 * KIB
    assert kept(new_segment(large, waited_for)) == (0, 2048)
    assert kept(new_segment(large, released)) == (0, 2048)
    # Freed by the program, in a call of its own.
    freed = entry("free_requested", LIVE, 8 * MIB)
    assert kept(new_segment(large, [freed, *waited_for])) == (1025, 2048)
    assert kept(new_segment(large, [freed, *released])) == (1025, 2048)
    assert kept(new_segment(2560 * KIB, [freed])) == (1025, 2048)
    # The entries before are lost.
    assert kept(new_segment(2560 * KIB, [])) == (0, 2048)


def test_a_request_that_failed_found_no_space() -> None:
    before = entry("free_requested", LIVE, 8 * MIB)
    assert kept([before, entry("oom", 7, 2560 * KIB)]) == (1025, 2048)
    assert kept([before, entry("oom", 7, 2560 * KIB, 7)]) == (0, 2048)
    waited_for = entry("free_completed", LIVE, 8 * MIB)
    assert kept([waited_for, entry("oom", 7, 15 * MIB + 512 * KIB)]) == (0, 2048)


def test_blocks_of_new_segments_count_until_these_are_gone() -> None:
    entries = [
        *new_segment(19 * MIB),
        entry("free_requested", 60 * MIB, 19 * MIB),
        entry("free_completed", 60 * MIB, 19 * MIB),
    ]
    taken = entry("alloc", 60 * MIB, 2560 * KIB)
    assert kept([*entries, taken]) == (1025, 2048)
    assert kept([*entries, entry("segment_free", 60 * MIB, 20 * MIB), taken]) == (0, 2048)


def test_the_pool_of_new_segments_may_be_unknown() -> None:
    """Up to torch 2.11 entries do not name it: with several pools nothing is concluded."""
    end = [segment(0, [block_of(512)]), segment(512, [block_of(512)], pool_id=(1, 0))]
    recording = recording_of(new_segment(2560 * KIB), end)
    one = uncertain()
    narrow(recording, 0, [SEGMENT], [BASE + UNCERTAIN, BASE + LIVE], [one])
    assert one.kept_bytes() == (0, MIB)


def test_nonsense_is_passed_over() -> None:
    entries = [
        entry("alloc", 0, 3 * MIB),
        entry("alloc", 90 * MIB, 3 * MIB),
        entry("free_completed", 0, 3 * MIB),
        entry("free_completed", 90 * MIB, 3 * MIB),
        entry("segment_free", 90 * MIB, 20 * MIB),
        entry("segment_alloc", UNCERTAIN, 20 * MIB),
    ]
    assert kept(entries) == (0, 2048)

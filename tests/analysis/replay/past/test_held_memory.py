from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from tests.support.made_recordings import entry, recording_of
from vramscope_analysis.replay.past.held_memory import (
    HeldSegment,
    MappedPages,
    joined,
    pool_of,
    without_overlaps,
)

PAGES = HeldSegment(
    address=100,
    size_bytes=40,
    stream=7,
    pool_id=(0, 0),
    is_small=False,
    is_expandable=True,
    freed_at=None,
)


def ranges(pages: MappedPages) -> list[tuple[int, int]]:
    return [(held.address, held.end) for held in pages]


def test_pages_are_mapped_and_unmapped_in_pieces() -> None:
    pages = MappedPages()
    assert pages.add(PAGES)
    assert pages.remove(110, 120)
    assert ranges(pages) == [(100, 110), (120, 140)]
    assert pages.remove(100, 110)
    assert ranges(pages) == [(120, 140)]
    assert [held.stream for held in pages] == [7]
    assert len(pages) == 1


def test_what_is_mapped_twice_stays_as_it_was() -> None:
    pages = MappedPages()
    pages.add(PAGES)
    assert not pages.add(dataclasses.replace(PAGES, address=90, size_bytes=70, stream=8))
    assert [(held.address, held.end, held.stream) for held in pages] == [
        (90, 100, 8),
        (100, 140, 7),
        (140, 160, 8),
    ]


def test_what_is_not_mapped_cannot_be_unmapped() -> None:
    pages = MappedPages()
    pages.add(PAGES)
    assert not pages.remove(90, 110)
    assert not pages.remove(0, 50)
    assert ranges(pages) == [(110, 140)]


def test_an_address_is_found_in_its_range() -> None:
    pages = MappedPages()
    pages.add(PAGES)
    found = [pages.at(address) for address in (99, 100, 139, 140)]
    assert found == [None, PAGES, PAGES, None]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(1, 10))))
def test_ranges_are_as_a_set_of_bytes_is(changes: list[tuple[bool, int, int]]) -> None:
    pages, mapped = MappedPages(), set[int]()
    for is_added, start, size_bytes in changes:
        touched = set(range(start, start + size_bytes))
        if is_added:
            added = dataclasses.replace(PAGES, address=start, size_bytes=size_bytes)
            assert pages.add(added) is mapped.isdisjoint(touched)
            mapped |= touched
        else:
            assert pages.remove(start, start + size_bytes) is touched.issubset(mapped)
            mapped -= touched
    assert [byte for start, end in ranges(pages) for byte in range(start, end)] == sorted(mapped)


def test_pages_without_a_gap_are_one_segment() -> None:
    unknown = dataclasses.replace(
        PAGES, address=140, size_bytes=10, pool_id=None, is_small=None, freed_at=3
    )
    later = dataclasses.replace(unknown, address=150, freed_at=9)
    apart = dataclasses.replace(PAGES, address=161, size_bytes=1)
    whole, rest = joined([PAGES, unknown, later, apart])
    assert whole == dataclasses.replace(PAGES, size_bytes=60, freed_at=9)
    assert rest == apart


def test_of_two_that_overlap_the_end_gives_way() -> None:
    """A segment that came after the last entry may lie where another one was."""
    gone = dataclasses.replace(PAGES, address=120, freed_at=3)
    behind = dataclasses.replace(PAGES, address=160)
    assert without_overlaps([PAGES, gone]) == ([gone], 1)
    assert without_overlaps([gone, dataclasses.replace(PAGES, address=150), behind]) == (
        [gone, behind],
        1,
    )
    both = dataclasses.replace(PAGES, size_bytes=20), dataclasses.replace(PAGES, address=120)
    assert without_overlaps(both) == ([*both], 0)


def test_what_only_touches_stays_apart() -> None:
    behind = dataclasses.replace(PAGES, address=140)
    for other in (
        dataclasses.replace(behind, stream=8),
        dataclasses.replace(behind, pool_id=(1, 0)),
        dataclasses.replace(behind, is_small=True),
        dataclasses.replace(behind, is_expandable=False),
    ):
        assert joined([PAGES, other]) == [PAGES, other]


def test_entries_name_their_pool_from_2_12_on() -> None:
    entries = [
        entry("segment_free", 0, 512, pool_id=(3, 1)),
        entry("alloc", 0, 1, pool_id=(-1, -1)),
    ]
    named = recording_of(entries, version=(2, 12)).events
    assert [pool_of(named, position) for position in (0, 1)] == [(3, 1), None]
    assert pool_of(recording_of(entries, version=(2, 11)).events, 0) is None

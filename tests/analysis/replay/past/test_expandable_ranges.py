from __future__ import annotations

import dataclasses

from tests.support.made_recordings import BASE, MIB, entry, recording_of
from vramscope_analysis.replay.past.expandable_ranges import range_addresses
from vramscope_analysis.replay.past.held_memory import HeldSegment

PAGE = 20 * MIB
HELD = HeldSegment(BASE + 10 * PAGE, PAGE, 0, (0, 0), False, True, None)
LATER = dataclasses.replace(HELD, address=BASE + 12 * PAGE)


def pages(action: str, number: int, stream: int = 0) -> tuple[str, int, int, int, tuple[int, int]]:
    return entry(action, number * PAGE, PAGE, stream)


LARGE, SMALL = entry("alloc", 0, 2 * MIB), entry("alloc", 0, 512)


def found(entries: list[tuple[str, int, int, int, tuple[int, int]]]) -> dict[int, int]:
    """Page numbers, by page number of the held segment."""
    addresses = range_addresses(recording_of(entries), 0, [HELD, LATER])
    return {(a - BASE) // PAGE: (b - BASE) // PAGE for a, b in addresses.items()}


def test_a_range_begins_with_its_lowest_page() -> None:
    assert found([]) == {10: 10, 12: 10}
    plain = dataclasses.replace(HELD, address=BASE, is_expandable=False)
    assert range_addresses(recording_of([]), 0, [plain, HELD]) == {HELD.address: HELD.address}
    assert range_addresses(recording_of([]), 0, [plain]) == {}


def test_pages_that_are_mapped_later_belong_to_it() -> None:
    assert found([pages("segment_map", 8), pages("segment_map", 9), LARGE]) == {10: 8, 12: 8}
    out_of_memory = entry("oom", 0, 2 * MIB)
    assert found([pages("segment_map", 8), out_of_memory]) == {10: 8, 12: 8}


def test_pages_of_other_streams_and_pools_do_not() -> None:
    assert found([pages("segment_map", 8, stream=7), LARGE]) == {10: 10, 12: 10}
    assert found([pages("segment_map", 8), SMALL]) == {10: 10, 12: 10}
    assert found([pages("segment_map", 8)]) == {10: 10, 12: 10}


def test_pages_with_others_in_between_are_two_ranges() -> None:
    between = dataclasses.replace(HELD, address=BASE + 11 * PAGE)
    no_pages = dataclasses.replace(between, is_expandable=False)
    of_another_stream = dataclasses.replace(between, stream=7)
    for other in (no_pages, of_another_stream):
        held = [HELD, other, LATER]
        entries = [pages("segment_map", 9), LARGE]
        addresses = range_addresses(recording_of(entries), 0, held)
        assert addresses[HELD.address] == BASE + 9 * PAGE
        # Nothing below what lies in between is of the same range.
        assert addresses[LATER.address] == LATER.address
    only_above = range_addresses(recording_of([pages("segment_map", 8), LARGE]), 0, held[1:])
    assert only_above[LATER.address] == LATER.address


def test_a_range_without_pages_is_given_up() -> None:
    unmapped = [pages("segment_unmap", 10), pages("segment_unmap", 12), pages("segment_unmap", 30)]
    assert found([*unmapped[:1], pages("segment_map", 8), LARGE]) == {10: 8, 12: 8}
    assert found([*unmapped, pages("segment_map", 8), LARGE]) == {10: 10, 12: 10}


def test_only_entries_from_the_position_on_count() -> None:
    entries = [pages("segment_map", 8), LARGE]
    assert range_addresses(recording_of(entries), 1, [HELD]) == {HELD.address: HELD.address}

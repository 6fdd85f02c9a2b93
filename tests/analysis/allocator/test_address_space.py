from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vramscope_analysis.allocator import FirstFitAddresses


def test_the_lowest_hole_that_is_large_enough_is_used() -> None:
    space = FirstFitAddresses(base_address=1000)
    first, second, third = space.reserve(10), space.reserve(20), space.reserve(10)
    assert (first, second, third) == (1000, 1010, 1030)

    space.release(first, 10)
    space.release(second, 20)

    assert space.reserve(25) == 1000
    assert space.reserve(6) == 1040
    assert space.reserve(5) == 1025


def test_a_range_at_the_end_shrinks_the_space() -> None:
    space = FirstFitAddresses(base_address=0)
    space.reserve(8)
    space.reserve(8)
    space.release(0, 8)
    space.release(8, 8)

    assert space.reserve(100) == 0


@given(st.lists(st.integers(1, 9), max_size=60))
def test_ranges_never_overlap(numbers: list[int]) -> None:
    space = FirstFitAddresses(base_address=0)
    live: list[tuple[int, int]] = []
    for number in numbers:
        if number % 3 == 0 and live:
            space.release(*live.pop(number % len(live)))
        else:
            live.append((space.reserve(number), number))
        end = 0
        for address, size_bytes in sorted(live):
            assert address >= end
            end = address + size_bytes


def test_a_range_that_lies_somewhere_is_not_handed_out() -> None:
    space = FirstFitAddresses(base_address=100)
    space.occupy(150, 50)
    space.occupy(20, 90)  # begins below the space

    assert [space.reserve(size) for size in (40, 10, 30)] == [110, 200, 210]
    space.release(150, 50)
    assert space.reserve_range(50) == 150


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=20))
def test_occupied_ranges_may_overlap(ranges: list[tuple[int, int]]) -> None:
    space = FirstFitAddresses(base_address=10)
    taken: set[int] = set()
    for address, size_bytes in ranges:
        space.occupy(address, size_bytes)
        taken |= set(range(address, address + size_bytes))

    handed_out = [space.reserve(1) for _ in range(60)]

    free = [address for address in range(10, 200) if address not in taken]
    assert handed_out == free[:60]

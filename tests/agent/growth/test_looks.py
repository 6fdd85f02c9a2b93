"""Looks are compared evenly, and begin anew when a collection has freed what grew."""

from __future__ import annotations

from typing import Any

from vramscope.growth.looks import MAX_FALLS, MAX_LOOKS, Looks

SIZE = 512


def segments(count: int, first: int = 0) -> list[dict[str, Any]]:
    frames = [{"filename": "train.py", "line": 7, "name": "main"}]
    blocks = [
        {"address": number * SIZE, "size": SIZE, "state": "active_allocated", "frames": frames}
        for number in range(first, first + count)
    ]
    return [{"blocks": blocks}]


def grow(looks: Looks, counts: list[int], collected: int = 0) -> None:
    for count in counts:
        looks.take(segments(count), 10 + looks.blocks.looks, count * SIZE, collected)


def test_growth_shows_when_there_are_as_many_looks_as_are_wanted() -> None:
    looks = Looks([], 4)
    grow(looks, [1, 2, 3])
    assert not looks.show_growth()
    grow(looks, [4])
    assert looks.show_growth()
    assert looks.compared() == [0, 1, 2, 3]
    grow(looks, [5, 6, 7])
    assert looks.compared() == [0, 2, 4, 6]
    assert [group.counts_at_looks for group in looks.groups()] == [[1, 3, 5, 7]]


def test_growth_that_no_place_explains_does_not_show() -> None:
    looks = Looks([], 3)
    for number, count in enumerate([1, 2, 3]):
        looks.take(segments(count), number, number * 1000 * SIZE, 0)
    assert not looks.show_growth()


def test_a_fall_after_a_collection_begins_anew() -> None:
    looks = Looks([], 4)
    grow(looks, [1, 5, 9])
    assert not looks.saw(9 * SIZE, 0)
    assert looks.saw(2 * SIZE, collected=100)
    assert (looks.count, looks.falls, looks.groups()) == (0, 1, [])
    # Three are enough from then on: the next fall may come soon.
    grow(looks, [2, 3, 4], collected=100)
    assert looks.show_growth()
    assert looks.compared() == [3, 4, 5]
    # Two were there all the time; the others were gone at the first look that is compared.
    assert list(looks.births().values()) == [-3, -2, 1, 2]


def test_without_a_collection_it_is_only_a_smaller_batch() -> None:
    looks = Looks([], 4)
    grow(looks, [1, 5, 9], collected=7)
    assert not looks.saw(2 * SIZE, collected=7)
    assert looks.count == 3


def test_after_so_many_falls_it_is_enough() -> None:
    looks = Looks([], 4)
    for fall in range(MAX_FALLS):
        assert not looks.are_full
        grow(looks, [1, 5, 9], collected=fall)
        assert looks.saw(0, collected=fall + 1)
    assert looks.are_full


def test_there_is_room_for_so_many() -> None:
    looks = Looks([], 4)
    grow(looks, [1] * (MAX_LOOKS - 1))
    assert not looks.are_full
    grow(looks, [1])
    assert looks.are_full


def test_a_fall_is_looked_for_once_after_each_collection() -> None:
    looks = Looks([], 4)
    assert not looks.may_have_fallen(5)  # nothing was seen yet
    grow(looks, [1, 2], collected=5)
    assert not looks.may_have_fallen(5)
    assert looks.may_have_fallen(6)
    assert not looks.may_have_fallen(6)
    assert looks.may_have_fallen(7)


def test_what_was_looked_for_and_is_gone_is_no_group() -> None:
    looks = Looks([], 3)
    grow(looks, [1, 2, 3])
    assert len(looks.groups()) == 1
    looks.blocks.drop_gone(segments(1))
    assert looks.groups() == []

"""Of what came, some of each time is looked for, and rather what stayed."""

from __future__ import annotations

from vramscope.growth.groups import Group
from vramscope.growth.samples import sample_addresses


def group(*addresses: list[int]) -> Group:
    return Group(0, 0, 0, [], [], list(addresses))


def test_some_of_each_time() -> None:
    found = sample_addresses(group([1, 2, 3], [11, 12], [21]), most=4)
    assert found == {1: 0, 11: 1, 2: 0, 12: 1}


def test_what_came_last_is_left_out_unless_there_is_little_else() -> None:
    assert sample_addresses(group([1, 2], [11], [21])) == {1: 0, 2: 0, 11: 1}
    assert sample_addresses(group([1], [11], [21])) == {1: 0, 11: 1, 21: 2}


def test_both_ends_of_many() -> None:
    found = sample_addresses(group(list(range(100)), []))
    assert set(found) == {0, 1, 2, 97, 98, 99}


def test_none() -> None:
    assert sample_addresses(group()) == {}
    assert sample_addresses(group([], [])) == {}

"""How many a container takes is read off its places, or off a number of its owner."""

from __future__ import annotations

import queue
from collections import OrderedDict
from typing import Any

import pytest

from vramscope.holders.bounds import bound_words
from vramscope.holders.naming import name_way
from vramscope.holders.reach import Root

THING = object()


class Buffer:
    """Keeps to its capacity."""

    def __init__(self, **numbers: Any) -> None:
        self.rows: Any = [THING] * 3
        self.columns = {"obs": [THING] * 3}
        self.__dict__.update(numbers)


class Cache(OrderedDict[int, object]):
    """A dictionary with a bound of its own."""

    max_size = 1  # of the class, and so of all of them

    def __init__(self, max_size: int) -> None:
        super().__init__({1: THING})
        self.max_size = max_size


def words(owner: Any, *below: Any) -> str:
    return bound_words([owner, *below, THING], len(below))


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"capacity": 1000}, "capacity=1000"),
        ({"_max_size": 8}, "max_size=8"),
        ({"_Cache__maxsize": 8}, "maxsize=8"),
        ({"buffer_size": 9, "capacity": 5}, "capacity=5"),
        ({"capacity": 2}, ""),  # there are three already
        ({"capacity": "1000", "maxsize": True, "steps": 1000, "batch_size": 64}, ""),
        ({}, ""),
    ],
)
def test_a_number_of_the_owner_with_room_is_a_bound(numbers: dict[str, Any], said: str) -> None:
    owner = Buffer(**numbers)
    assert words(owner, owner.rows) == words(owner, owner.__dict__, owner.rows) == said
    assert words(owner, owner.__dict__, owner.columns, owner.columns["obs"]) == said


def test_places_that_are_empty_are_to_be_filled() -> None:
    assert words([THING, None, None, THING]) == "empty=2"
    owner = Buffer(rows=[None, THING], capacity=1000)
    assert words(owner, owner.rows) == "empty=1"


def test_a_container_may_be_its_own_owner() -> None:
    assert words(Cache(40)) == "max_size=40"
    waiting: queue.Queue[object] = queue.Queue(maxsize=7)
    waiting.put(THING)
    assert words(waiting, waiting.queue) == "maxsize=7"


def test_the_nearest_owner_alone_is_asked() -> None:
    outer, inner = Buffer(capacity=9), Buffer()
    assert words(outer, outer.__dict__, inner, inner.rows) == ""


def test_it_is_said_with_the_container() -> None:
    owner = Buffer(capacity=1000)
    found = name_way([owner, owner.rows, THING], 1, Root("local", "buffer", None), tensors=3)
    assert found.chain == ["Buffer.rows", "list(capacity=1000) of 3"]

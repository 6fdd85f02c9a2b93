"""What refers to an object is found, and garbage is told as Python's collector tells it."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.holders import ancestry as module
from vramscope.holders.ancestry import Ancestry


class Node:
    """Holds others."""

    def __init__(self, *held: Any) -> None:
        self.held = list(held)


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


LIVE: list[Any] = []


def searched(*targets: Any, limit_s: float = 60.0, anchors: tuple[Any, ...] = ()) -> Ancestry:
    ids = set(map(id, anchors))
    found = Ancestry(lambda value: id(value) in ids, limit_s)
    wanted = list(targets)
    del targets, anchors
    found.search(wanted)
    return found


def made_garbage() -> Any:
    """Something in a circle that nobody else refers to; all that is known of it is its id."""
    leaf = Node()
    node = Node(leaf)
    node.held.append(node)
    return id(leaf)


def by_id(number: int) -> list[Any]:
    return [each for each in gc.get_objects() if id(each) == number]


def search_by_id(number: int, **options: Any) -> Ancestry:
    found = Ancestry(lambda value: False, options.get("limit_s", 60.0))
    found.search(by_id(number))
    return found


def test_a_circle_is_garbage() -> None:
    number = made_garbage()
    found = search_by_id(number)
    assert number in found.garbage
    assert found.alive == set()
    circle = found.circle_above(found.objects[number])
    assert sum(type(each) is Node for each in circle) == 1
    way = found.way_down(found.objects[number])
    assert id(way[-1]) == number
    assert any(each is way[0] for each in circle)
    found.clear()
    assert found.objects == {}


def test_what_a_live_object_holds_is_no_garbage() -> None:
    leaf = Node()
    owner = Node(leaf)
    LIVE.append(owner)
    try:
        number = id(leaf)
        del leaf, owner
        found = search_by_id(number)
        assert found.garbage == set()
        way = found.way_to(found.objects[number])
        assert id(way[-1]) == number
        assert any(type(each) is Node and id(each) != number for each in way)
        found.clear()
    finally:
        LIVE.clear()


def test_a_reference_that_the_collector_does_not_see_keeps_alive() -> None:
    # As an object in C++ does: a variable of a running function is not among what it traverses.
    circle = Node()
    circle.held.append(circle)
    found = search_by_id(id(circle))
    assert found.garbage == set()
    assert id(circle) in found.alive
    found.clear()


def test_it_goes_no_further_than_an_anchor() -> None:
    leaf = Node()
    middle = Node(leaf)
    top = Node(middle)
    number = id(leaf)
    found = searched(leaf, anchors=(middle,))
    assert id(middle) in found.anchors
    assert id(top) not in found.objects
    assert found.garbage == set()
    way = found.way_to(found.objects[number])
    assert way[-1] is leaf
    found.clear()


def test_a_class_and_a_module_are_anchors() -> None:
    class Owner:
        leaf = Node()

    found = searched(Owner.leaf)
    assert any(found.objects[number] is Owner for number in found.anchors)
    assert found.garbage == set()
    found.clear()
    variables = vars(types.ModuleType("job"))
    variables["leaf"] = Node()
    found = searched(variables["leaf"])
    assert any(found.objects[number] is variables for number in found.anchors)
    assert found.garbage == set()
    found.clear()


def test_stopped_early_nothing_is_called_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    number = made_garbage()
    found = search_by_id(number, limit_s=0.0)
    assert not found.is_complete
    assert found.garbage == set()
    found.clear()
    monkeypatch.setattr(module, "MAX_OBJECTS", 1)
    found = search_by_id(number)
    assert not found.is_complete
    found.clear()


def test_nothing_is_kept_afterwards() -> None:
    number = made_garbage()
    found = search_by_id(number)
    found.clear()
    del found
    gc.collect()
    assert by_id(number) == []

"""The job's own objects are reached from its names, within bounds, and nothing is changed."""

from __future__ import annotations

import sys
import types
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.holders import reach as module
from vramscope.holders.reach import Reach


class Thing:
    """Is looked for."""


@pytest.fixture
def reach() -> Iterator[Reach]:
    reach = Reach(60.0)
    yield reach
    reach.clear()


def is_thing(value: Any) -> bool:
    return type(value) is Thing


def names(reach: Reach) -> list[str]:
    """Of the variables that lead to what was found."""
    return [reach.root_of(reach.path_to(number)).name for number in reach.found]


def test_a_variable_of_a_function(reach: Reach) -> None:
    mine = Thing()
    reach.search(is_thing)
    (number,) = reach.found
    assert reach.objects[number] is mine
    root = reach.root_of(reach.path_to(number))
    assert (root.kind, root.name) == ("local", "mine")
    assert root.line is not None
    assert root.line.function == "test_a_variable_of_a_function"


def test_what_containers_and_objects_hold(reach: Reach) -> None:
    holder = types.SimpleNamespace(value=Thing())
    table = {"key": [(Thing(),)]}
    keys = {Thing(): 1}
    queue = deque([Thing()], maxlen=3)
    cell = Thing()

    def function() -> Any:
        return cell

    reach.search(is_thing)
    assert len(reach.found) == 5
    assert {"holder", "table", "keys", "queue"} <= set(names(reach))
    assert holder
    assert all((table, keys, queue, function()))


def test_a_module_of_the_user(reach: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    users = types.ModuleType("somebodys")
    users.__file__ = "/home/somebody/somebodys.py"
    users.kept = [Thing()]  # type: ignore[attr-defined]
    library = types.ModuleType("a_library")
    library.__file__ = "/opt/venv/lib/python3.11/site-packages/a_library.py"
    library.kept = [Thing()]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "somebodys", users)
    monkeypatch.setitem(sys.modules, "a_library", library)
    del users, library
    reach.search(is_thing)
    roots = [reach.root_of(reach.path_to(number)) for number in reach.found]
    assert [(root.kind, root.name) for root in roots] == [("global", "kept")]


def test_what_the_last_error_of_a_shell_holds(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        value = Thing()
        raise ValueError(value)

    try:
        fails()
    except ValueError as error:
        monkeypatch.setattr(sys, "last_traceback", error.__traceback__, raising=False)
    reach.search(is_thing)
    assert "sys.last_traceback" in names(reach)


def test_every_way_to_an_object(reach: Reach) -> None:
    first = [Thing()]
    second = [first[0]]
    reach.search(is_thing)
    (number,) = reach.found
    parents = {reach.parents[number], *reach.also[number]}
    ways = [reach.path_to(number, parent) for parent in parents]
    assert {reach.root_of(way).name for way in ways} >= {"first", "second"}
    assert set(reach.above(number)) >= parents
    assert len(first + second) == 2


def test_of_long_containers_the_ends(reach: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NEWEST", 3)
    monkeypatch.setattr(module, "_OLDEST", 1)
    row = [Thing() for _ in range(10)]
    table = {number: Thing() for number in range(10)}
    reach.search(is_thing)
    found = {id(reach.objects[number]) for number in reach.found}
    assert found == set(map(id, [row[0], *row[-3:], table[0], table[7], table[8], table[9]]))


def test_it_stops_at_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [[Thing()]]
    late = Reach(0.0)
    late.search(is_thing)
    assert not late.is_complete
    late.clear()
    small = Reach(60.0, max_objects=1)
    small.search(is_thing)
    assert not small.is_complete
    small.clear()
    assert mine


def test_proxies_and_objects_that_raise_are_passed_by(reach: Reach) -> None:
    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("compared")

        __hash__ = None  # type: ignore[assignment]

        def __len__(self) -> int:
            raise RuntimeError("counted")

    class Dict(dict[str, Any]):
        def values(self) -> Any:
            raise RuntimeError("asked")

    thing = Thing()
    hostile = [Hostile(), weakref.proxy(thing), Dict(a=Thing())]
    reach.search(is_thing)
    assert len(reach.found) == 2
    assert len(hostile) == 3


def test_nothing_is_held_afterwards() -> None:
    thing: Thing | None = Thing()
    gone = weakref.ref(thing)
    reach = Reach(60.0)
    reach.search(is_thing)
    reach.clear()
    thing = None
    assert gone() is None


def test_what_the_agent_holds_is_nobodys_business(reach: Reach) -> None:
    other = Reach(60.0)  # as a job has the session in a variable
    other.objects.append(Thing())
    reach.search(is_thing)
    assert reach.found == []

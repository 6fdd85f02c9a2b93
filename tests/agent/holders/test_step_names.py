"""How one object is had from another, in words."""

from __future__ import annotations

import functools
from collections import OrderedDict, deque, namedtuple
from typing import Any

import pytest

from vramscope.holders.step_names import (
    attribute_name,
    closure_name,
    container_words,
    has_attributes,
    is_loader,
    is_lru_cache,
    step_words,
)


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


class Slotted:
    __slots__ = ("unset", "value")

    def __init__(self, value: Any) -> None:
        self.value = value


class _BaseDataLoaderIter:
    """By its name that of PyTorch."""


class Loader(_BaseDataLoaderIter):
    pass


Pair = namedtuple("Pair", "first second")
THING = object()


@functools.lru_cache(maxsize=8)
def cached(value: int) -> int:
    return value


@pytest.mark.parametrize(
    ("parent", "words"),
    [
        ({"acc": THING}, "['acc']"),
        ({3: THING}, "[3]"),
        ({("a", 1): THING}, "[('a', 1)]"),
        ({Plain: THING}, "[<type>]"),
        (OrderedDict(a=THING), "['a']"),
        ([0, THING], "[1]"),
        ((THING,), "[0]"),
        (Pair(0, THING), ".second"),
        (Plain(THING), ".value"),
        (Slotted(THING), ".value"),
        ([0], ""),
        (Plain(0), ""),
    ],
)
def test_words(parent: Any, words: str) -> None:
    assert step_words(parent, THING) == words


def test_a_key_is_held_too() -> None:
    key = Plain(1)
    assert step_words({key: 1}, key) == "key Plain"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1, 2], "list of 2"),
        ({"a": 1}, "dict of 1"),
        (OrderedDict(a=1), "OrderedDict of 1"),
        (deque([1], maxlen=5), "deque(maxlen=5) of 1"),
        (deque([1]), "deque of 1"),
        (Plain(1), ""),
        (cached, "lru_cache(maxsize=8) of 0"),
    ],
)
def test_containers(value: Any, words: str) -> None:
    assert container_words(value) == words


def test_kinds_of_objects() -> None:
    assert has_attributes(Plain(1))
    assert not has_attributes([1])
    assert not has_attributes(Plain)
    assert not has_attributes(cached)
    assert is_lru_cache(cached)
    assert is_loader(Loader())
    assert not is_loader(Plain(1))


def test_attributes_and_cells() -> None:
    plain = Plain(THING)
    assert attribute_name(plain, THING) == "value"
    assert attribute_name(plain, plain.__dict__) == ""
    seen = [1]

    def keeps() -> Any:
        return seen

    assert keeps.__closure__ is not None
    assert closure_name(keeps, keeps.__closure__[0]) == "seen"
    assert closure_name(keeps, object()) == ""


def test_a_list_that_makes_its_members_when_asked_is_not_asked() -> None:
    class Lazy(list[Any]):
        def __iter__(self) -> Any:
            raise RuntimeError("loads a shard")

    class LazyPair(tuple[Any, ...]):
        __slots__ = ()

        def __iter__(self) -> Any:
            raise RuntimeError("loads a shard")

    assert step_words(Lazy([0, THING]), THING) == "[1]"
    assert step_words(LazyPair((THING,)), THING) == "[0]"

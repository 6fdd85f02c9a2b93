"""Foreign objects are asked by their classes, and answer nothing themselves."""

from __future__ import annotations

import weakref
from typing import Any

from vramscope.collectors.self_cost import SelfCost
from vramscope.holders.classes import OwnClasses, attributes_of, class_name, class_of


class Something:
    def __init__(self) -> None:
        self.value = 1


class Lying:
    """Says that it is something else, and raises when it is asked."""

    @property  # type: ignore[misc]  # that is the lie
    def __class__(self) -> Any:
        return Something

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_a_proxy_is_a_proxy_dead_or_alive() -> None:
    something = Something()
    proxy = weakref.proxy(something)
    assert class_name(proxy) == "ProxyType" or class_of(proxy) is weakref.ProxyType
    assert attributes_of(proxy) == {}
    del something
    assert class_of(proxy) is weakref.ProxyType
    assert attributes_of(proxy) == {}


def test_what_an_object_says_of_itself_is_not_asked() -> None:
    assert class_of(Lying()) is Lying
    assert class_name(Lying()) == "Lying"
    assert attributes_of(Lying()) == {}


def test_attributes_are_the_dictionary_itself() -> None:
    something = Something()
    assert attributes_of(something) is something.__dict__
    assert attributes_of(1) == {}


def test_objects_of_the_agent_are_known_by_their_classes() -> None:
    own = OwnClasses()
    assert own.has(SelfCost(lambda: 0))
    assert not own.has(Something())
    assert not own.has(Lying())
    assert not own.has(weakref.proxy(own))
    demo = type("Model", (), {"__module__": "vramscope.demo.train"})
    assert not own.has(demo())


def test_a_property_in_place_of_the_dictionary_is_not_asked() -> None:
    class Proxy(Something):
        @property
        def __dict__(self) -> Any:  # type: ignore[override]  # as proxies of web frameworks have it
            raise RuntimeError("outside of a request")

    assert attributes_of(Proxy()) in ({}, {"value": 1})

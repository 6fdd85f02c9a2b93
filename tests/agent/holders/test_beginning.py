"""Words begin at the nearest name that a person knows."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any, ClassVar

from vramscope.holders.beginning import (
    beginning,
    closure_variable,
    instance_attribute,
    named_step,
)
from vramscope.holders.holder import SourceLine
from vramscope.holders.reach import Root

THING = object()
ROOT = Root("local", "mine", SourceLine("train.py", 3, "main"))


class Owner:
    shared: ClassVar[list[Any]] = [THING]

    def __init__(self) -> None:
        self.rows = [THING]


class Module:
    def __init__(self, hooks: Any) -> None:
        self._forward_hooks = hooks


class _BaseDataLoaderIter:
    def __init__(self) -> None:
        self.batch = [THING]


def test_a_variable() -> None:
    found = beginning([[THING], THING], 0, ROOT)
    assert (found.position, found.kind, found.words, found.line) == (0, "local", "mine", ROOT.line)
    assert found.target is not None
    assert (found.target.name, found.target.first_line) == ("mine", 3)


def test_no_name_at_all() -> None:
    found = beginning([[THING], THING], 0, None)
    assert (found.kind, found.words, found.target) == ("unknown", "list", None)


def test_an_attribute_of_an_object_comes_before_the_variable() -> None:
    owner = Owner()
    found = beginning([owner, owner.rows, THING], 1, ROOT)
    assert (found.position, found.kind, found.words) == (1, "attribute", "Owner.rows")
    assert found.target is not None
    assert (found.target.file, found.target.class_name) == (__file__, "Owner")
    # The same by the dictionary of its attributes.
    again = instance_attribute([owner, owner.__dict__, owner.rows], 0)
    assert again is not None
    assert (again.position, again.words) == (2, "Owner.rows")


def test_an_attribute_of_a_class() -> None:
    namespace = dict(Owner.__dict__)
    found = named_step([Owner, namespace, Owner.shared, THING], 0)
    assert found is not None
    assert (found.position, found.words) == (2, "Owner.shared")


def test_a_variable_of_a_closure() -> None:
    seen = [THING]

    def keep() -> Any:
        return seen

    cells = keep.__closure__
    assert cells is not None
    way = [keep, cells, cells[0], seen, THING]
    assert closure_variable(way, 0) == "seen"
    found = beginning(way, 3, ROOT)
    assert (found.position, found.kind) == (3, "closure")
    assert found.words.startswith("seen in ")
    assert found.line is not None
    assert found.line.line == keep.__code__.co_firstlineno


def test_a_cache() -> None:
    @functools.lru_cache
    def grid(owner: Any) -> Any:
        return owner

    found = beginning([grid, ((THING,),), THING], 0, ROOT)
    assert found.kind == "lru_cache"
    assert found.words.endswith("grid")
    assert found.line is not None
    assert found.line.function == "grid"


def test_hooks() -> None:
    def hook() -> Any:
        return THING

    hooks = OrderedDict({1: hook})
    module = Module(hooks)
    found = beginning([module, module.__dict__, hooks, hook, THING], 2, ROOT)
    assert (found.kind, found.words) == ("hook", "hook on Module")
    assert found.line is not None
    assert found.line.function == "hook"


def test_a_loader() -> None:
    loader = _BaseDataLoaderIter()
    found = beginning([loader, loader.batch, THING], 1, ROOT)
    assert (found.kind, found.words) == ("data_loader", "_BaseDataLoaderIter")


def test_what_is_cached_is_not_asked_for_its_name() -> None:
    class Called:
        def __call__(self, value: Any) -> Any:
            return value

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    cache = functools.lru_cache(len)
    cache.__dict__["__wrapped__"] = Called()
    found = beginning([cache, THING], 0, None)
    assert (found.kind, found.words, found.line) == ("lru_cache", "a function", None)

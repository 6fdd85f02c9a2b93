"""A way to a tensor, and a circle of garbage, in words."""

from __future__ import annotations

import functools
from types import MethodType
from typing import Any

from vramscope.holders.holder import SourceLine
from vramscope.holders.naming import circle_targets, circle_words, name_way
from vramscope.holders.reach import Root

THING = object()
ROOT = Root("local", "mine", SourceLine("train.py", 3, "main"))


class Owner:
    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {"acc": [THING, THING]}
        self.one = THING

    def method(self) -> None:
        """Is stored somewhere."""


def test_the_place_of_one_among_many_is_left_out() -> None:
    owner = Owner()
    way = [owner, owner.rows, owner.rows["acc"], THING]
    several = name_way(way, 2, ROOT, tensors=3)
    assert several.chain == ["Owner.rows", "['acc']", "list of 2"]
    assert several.tensors == 3
    assert not several.targets[0].is_single
    one = name_way(way, 2, ROOT)
    assert one.chain == ["Owner.rows", "['acc']", "list of 2", "[0]"]


def test_an_attribute_that_is_the_tensor_itself() -> None:
    owner = Owner()
    found = name_way([owner, THING], 0, ROOT)
    assert (found.kind, found.chain) == ("attribute", ["Owner.one"])
    assert found.targets[0].is_single
    # By the dictionary of the attributes, which is no container of the job.
    found = name_way([owner, owner.__dict__, THING], 1, ROOT)
    assert found.chain == ["Owner.one"]


def test_a_variable_that_is_the_tensor_itself() -> None:
    found = name_way([THING], 0, ROOT)
    assert (found.kind, found.chain, found.frame) == ("local", ["mine"], ROOT.line)


def test_an_exception_tells_where_its_frame_stopped() -> None:
    def fails() -> None:
        big = [THING]
        raise ValueError(big)

    errors: list[ValueError] = []
    try:
        fails()
    except ValueError as error:
        errors.append(error)
    trace = errors[0].__traceback__
    assert trace is not None
    assert trace.tb_next is not None
    frame = trace.tb_next.tb_frame
    big = frame.f_locals["big"]
    found = name_way([errors, errors[0], trace, trace.tb_next, frame, big], 0, ROOT, 2)
    assert found.kind == "exception"
    assert found.chain == ["mine", "list of 1", "ValueError", "frame fails", "big"]
    assert found.frame is not None
    assert (found.frame.function, found.frame.line) == ("fails", frame.f_lineno)


def test_long_chains_are_shortened() -> None:
    deepest: list[Any] = [THING]
    way: list[Any] = [deepest, THING]
    for _ in range(20):
        way.insert(0, [way[0]])
    found = name_way(way, 20, ROOT)
    assert len(found.chain) == 8
    assert "…" in found.chain


def test_a_circle() -> None:
    owner: Any = Owner()
    method = owner.method
    owner.which = method
    circle = [owner, method]
    words = circle_words(circle, [owner, THING])
    assert words == ["Owner", "Owner.which", "method Owner.method", "Owner.one"]
    (target,) = circle_targets(circle)
    assert (target.name, target.is_single, target.class_name) == ("which", True, "Owner")
    assert circle_words([], []) == []


def test_a_method_may_be_anything_that_can_be_called() -> None:
    method = MethodType(functools.partial(max, 1), Owner())
    found = name_way([[method, method], method, THING], 0, ROOT, 2)
    assert "method partial" in found.chain

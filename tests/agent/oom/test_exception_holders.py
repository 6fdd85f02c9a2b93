from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from vramscope.holders.holder import HolderFound
from vramscope.oom.exception_holders import held_by_exceptions


class Large:
    """Stands for a tensor."""


def look(*values: Large) -> dict[int, HolderFound]:
    wanted = {id(value) for value in values}
    return held_by_exceptions(lambda value: id(value) if id(value) in wanted else None)


@pytest.fixture(autouse=True)
def nothing_shown_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("last_exc", "last_value", "last_traceback"):
        monkeypatch.delattr(sys, name, raising=False)


def fail_with(make: Callable[[Large], Any], value: Large) -> None:
    kept = make(value)
    del value
    raise ValueError(f"with {type(kept).__name__}")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda value: value, []),
        (lambda value: [0, value], ["[1]"]),
        (lambda value: (value,), ["[0]"]),
        (lambda value: {"loss": value}, ["['loss']"]),
        (lambda value: {(1, 2): value}, ["[...]"]),
    ],
)
def test_a_retry_inside_except_has_the_frames_of_the_first_try(
    make: Callable[[Large], Any], words: list[str]
) -> None:
    value = Large()
    try:
        fail_with(make, value)
    except ValueError:
        (holder,) = look(value).values()
    assert holder.kind == "exception"
    assert holder.chain == ["the exception being handled", "frame fail_with", "kept", *words]
    assert holder.frame is not None
    assert holder.frame.function == "fail_with"
    assert look(value) == {}


def test_what_still_runs_holds_its_variables_by_itself() -> None:
    value = Large()
    try:
        raise ValueError
    except ValueError:
        assert look(value) == {}


def test_what_a_prompt_shows_last_is_kept_and_what_lies_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = Large()
    try:
        try:
            fail_with(lambda each: each, value)
        except ValueError as first:
            raise RuntimeError("second") from first
    except RuntimeError as second:
        monkeypatch.setattr(sys, "last_value", second, raising=False)
    (holder,) = look(value).values()
    assert holder.chain[0] == "sys.last_value"
    monkeypatch.undo()


def test_exceptions_that_go_round_in_circles_and_what_is_none_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__context__ = second, first
    monkeypatch.setattr(sys, "last_exc", first, raising=False)
    monkeypatch.setattr(sys, "last_value", "a text", raising=False)
    assert look(Large()) == {}
    first.__context__ = None


def test_it_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(Large):
        alive = 0

        def __init__(self) -> None:
            Counted.alive += 1

        def __del__(self) -> None:
            Counted.alive -= 1

    was_on = gc.isenabled()
    gc.disable()
    try:
        value: Large = Counted()
        try:
            fail_with(lambda each: each, value)
        except ValueError:
            assert len(look(value)) == 1
        del value
        assert Counted.alive == 0
    finally:
        if was_on:
            gc.enable()

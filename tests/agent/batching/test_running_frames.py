"""Objects are found on the stack of the thread that asks, and are not kept."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from typing import Any

from vramscope.batching.running_frames import frames, values, variables


class Held:
    """Something that a function has."""


SHARED = Held()


def outer(name: str) -> tuple[dict[str, Any] | None, list[Any]]:
    held = Held()
    found = variables(name, ("outer",))
    assert found is None or found["held"] is held
    return found, values()


def test_variables_of_a_running_function_are_found_by_its_module() -> None:
    found, _ = outer(__name__)
    assert found is not None
    assert found["name"] == __name__
    assert outer("no.such.module")[0] is None
    other = types.ModuleType("other")
    other.__file__ = "/elsewhere.py"
    sys.modules["other"] = other
    try:
        assert outer("other")[0] is None
    finally:
        del sys.modules["other"]


def test_what_functions_and_modules_have_is_gone_through() -> None:
    _, found = outer(__name__)
    assert any(each is SHARED for each in found)
    assert any(type(each) is Held and each is not SHARED for each in found)


def test_nothing_is_kept_alive_in_a_function_that_runs_on() -> None:
    gc.disable()
    try:
        held = Held()
        kept = weakref.ref(held)
        assert any(each is held for each in values())
        del held
        assert kept() is None
    finally:
        gc.enable()


def test_frames_are_the_innermost_first_without_the_one_that_asks() -> None:
    def asks() -> list[str]:
        return [frame.f_code.co_name for frame in frames()]

    name = "test_frames_are_the_innermost_first_without_the_one_that_asks"
    assert asks()[0] == name

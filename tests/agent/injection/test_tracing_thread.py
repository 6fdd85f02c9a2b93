"""Work of a tracer happens on a thread of its own, and its outcome comes back."""

from __future__ import annotations

import gc
import threading

import pytest

from vramscope.injection.errors import InjectionError
from vramscope.injection.ptrace import ThreadGone
from vramscope.injection.tracing_thread import run_as_tracer


def test_result_and_thread() -> None:
    assert run_as_tracer(threading.get_ident) != threading.get_ident()
    assert [thread.name for thread in threading.enumerate() if "injection" in thread.name] == []


def test_no_collection_while_it_works() -> None:
    assert run_as_tracer(gc.isenabled) is False
    assert gc.isenabled()
    gc.disable()
    try:
        run_as_tracer(gc.isenabled)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_errors_come_back_and_an_ended_target_has_a_name() -> None:
    def fail() -> None:
        raise ValueError("as it was")

    def lose() -> None:
        raise ThreadGone("the process has ended")

    with pytest.raises(ValueError, match="as it was"):
        run_as_tracer(fail)
    with pytest.raises(InjectionError, match="has ended") as caught:
        run_as_tracer(lose)
    assert caught.value.kind == "gone"
    assert gc.isenabled()

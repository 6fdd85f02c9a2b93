"""Variables of running functions are read, and nothing of the job changes by it."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from vramscope.holders.frame_locals import is_function, live_frames, locals_of


class Thing:
    """Can be referred to weakly."""


def frame_here() -> FrameType:
    frame = sys._getframe(1)
    assert frame is not None
    return frame


def test_variables_of_a_function_by_name() -> None:
    first, second = Thing(), [1]

    def inner() -> Any:
        return second

    found = locals_of(frame_here())
    assert found is not None
    assert found["first"] is first
    assert found["second"] is second  # shared with the function inside
    assert inner() is second
    assert "third" not in found
    third = 3
    assert third


def test_values_are_not_kept_alive_by_having_been_read() -> None:
    value: Thing | None = Thing()
    gone = weakref.ref(value)
    found = locals_of(frame_here())
    assert found is not None
    assert found["value"] is value
    del found
    value = None
    assert gone() is None


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="locals() is a copy there")
def test_what_the_job_got_from_locals_is_left_alone() -> None:
    before = 1
    mine = locals()
    names = set(mine)
    after = 2
    locals_of(frame_here())
    assert set(mine) == names
    assert "after" not in names
    assert (mine["before"], after) == (before, 2)


def test_a_function_that_is_over_still_tells() -> None:
    def fails() -> None:
        value = [1]
        raise ValueError(value)

    with pytest.raises(ValueError, match="1") as caught:
        fails()
    trace = caught.value.__traceback__
    assert trace is not None
    assert trace.tb_next is not None
    assert (locals_of(trace.tb_next.tb_frame) or {})["value"] == [1]


def test_a_generator_that_waits_tells() -> None:
    def numbers() -> Iterator[int]:
        held = [1]
        yield held[0]

    waiting: Any = numbers()
    next(waiting)
    assert (locals_of(waiting.gi_frame) or {})["held"] == [1]


def test_a_module_is_no_function() -> None:
    seen: list[bool] = []
    exec(
        "seen.append(is_function(frame()))",
        {"seen": seen, "is_function": is_function, "frame": frame_here},
    )
    assert seen == [False]
    assert is_function(frame_here())


def test_frames_of_all_threads_without_ours() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other_thread() -> None:
        entered.set()
        leave.wait(30)

    thread = threading.Thread(target=other_thread)
    thread.start()
    try:
        assert entered.wait(30)
        names = [frame.f_code.co_name for frame in live_frames()]
    finally:
        leave.set()
        thread.join()
    here = "test_frames_of_all_threads_without_ours"
    assert "other_thread" in names
    assert here in names
    assert "live_frames" not in names
    # The outermost of a thread comes first: what calls its function is ``Thread.run``.
    assert names[names.index("other_thread") - 1] == "run"


def test_no_cycle_of_frames_is_left() -> None:
    def job() -> weakref.ref[Thing]:
        value = Thing()
        live_frames()
        return weakref.ref(value)

    gc.collect()
    gc.disable()
    try:
        assert job()() is None
    finally:
        gc.enable()


def test_a_debugger_that_comes_later_finds_all_variables() -> None:
    """What a tracer is told of is put back afterwards: it must not be what we have emptied."""

    def tracer(frame: FrameType, what: str, argument: Any) -> Any:
        return tracer

    def job() -> list[int]:
        kept = [1]
        here = frame_here()
        assert (locals_of(here) or {})["kept"] is kept
        here.f_trace = tracer
        sys.settrace(tracer)
        after = 2
        sys.settrace(None)
        return [*kept, after]

    before = sys.gettrace()
    try:
        assert job() == [1, 2]
    finally:
        sys.settrace(before)


def test_variables_that_a_debugger_of_another_thread_looks_at_stay() -> None:
    is_held, go_on = threading.Event(), threading.Event()
    frames: list[FrameType] = []
    values: list[Any] = []

    def tracer(frame: FrameType, what: str, argument: Any) -> Any:
        if frame.f_code.co_name == "traced" and frame.f_locals.get("is_set"):
            frames.append(frame)
            is_held.set()
            go_on.wait(30)
        return tracer if frame.f_code.co_name == "traced" else None

    def traced() -> None:
        value = [1]
        is_set = True
        values.append((value, is_set))

    def run() -> None:
        sys.settrace(tracer)
        traced()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert is_held.wait(30)
        locals_of(frames[0])
    finally:
        go_on.set()
        thread.join()
    assert values == [([1], True)]


def test_no_collection_can_come_while_frames_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    listed = sys._current_frames

    def list_frames() -> dict[int, FrameType]:
        seen.append(gc.isenabled())
        return listed()

    monkeypatch.setattr(sys, "_current_frames", list_frames)
    live_frames()
    assert seen == [False]
    assert gc.isenabled()

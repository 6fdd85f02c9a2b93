from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import pytest

from vramscope.oom.thread_stacks import (
    MAX_FRAMES,
    MAX_THREADS,
    part_of_step,
    stack_lines,
    thread_stacks,
    traceback_lines,
)


def lines(*files: str) -> list[dict[str, Any]]:
    return [{"file": file, "line": 1, "function": "f"} for file in files]


def test_the_thread_that_ran_out_comes_first_and_innermost_lines_do() -> None:
    is_waiting, go_on = threading.Event(), threading.Event()

    def wait_here() -> None:
        is_waiting.set()
        go_on.wait()

    other = threading.Thread(target=wait_here, name="loader", daemon=True)
    other.start()
    try:
        assert is_waiting.wait(10)
        found = thread_stacks(threading.get_ident())
    finally:
        go_on.set()
        other.join()
    own = found[0]
    assert own["raised"]
    assert own["name"] == threading.current_thread().name
    assert own["frames"][0]["function"] == sys._getframe().f_code.co_name
    (loader,) = (each for each in found if each["name"] == "loader")
    assert (loader["daemon"], loader["raised"], loader["is_own"]) == (True, False, False)
    assert "wait_here" in [frame["function"] for frame in loader["frames"]]


def test_it_keeps_no_frame_of_the_job_alive() -> None:
    class Tensor:
        """Something large."""

    def step() -> weakref.ref[Tensor]:
        tensor = Tensor()
        thread_stacks(threading.get_ident())
        return weakref.ref(tensor)

    was_on = gc.isenabled()
    gc.disable()
    try:
        assert step()() is None
    finally:
        if was_on:
            gc.enable()


def test_deep_stacks_and_many_threads_are_cut() -> None:
    def deep(depth: int) -> list[dict[str, Any]]:
        return deep(depth - 1) if depth else stack_lines(sys._getframe())

    assert len(deep(MAX_FRAMES * 2)) == MAX_FRAMES
    go_on = threading.Event()
    threads = [threading.Thread(target=go_on.wait, daemon=True) for _ in range(MAX_THREADS + 5)]
    for thread in threads:
        thread.start()
    try:
        found = thread_stacks(threading.get_ident())
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
    assert len(found) == MAX_THREADS
    assert found[0]["raised"]


def test_the_part_of_a_step_is_told_by_the_stack() -> None:
    optimizer = lines("/env/torch/optim/adamw.py", "/env/torch/nn/modules/module.py", "train.py")
    forward = lines("model.py", "/env/torch/nn/modules/module.py", "train.py")
    backward = [
        {"file": "/env/torch/autograd/graph.py", "line": 1, "function": "_engine_run_backward"}
    ]
    assert part_of_step(optimizer, in_backward=False) == "optimizer"
    assert part_of_step(forward, in_backward=False) == "forward"
    assert part_of_step([*backward, *lines("train.py")], in_backward=False) == "backward"
    assert part_of_step(forward, in_backward=True) == "backward"
    assert part_of_step(lines("train.py"), in_backward=False) == ""


def test_an_exception_has_the_lines_that_it_came_through() -> None:
    def fail(depth: int) -> None:
        if depth:
            fail(depth - 1)
        raise RuntimeError

    found: list[list[dict[str, Any]]] = []
    for depth in (0, 2 * MAX_FRAMES):
        try:
            fail(depth)
        except RuntimeError as error:
            found.append(traceback_lines(error))
    assert [line["function"] for line in found[0]] == ["fail", sys._getframe().f_code.co_name]
    assert len(found[1]) == MAX_FRAMES
    assert found[1][0]["line"] > found[1][1]["line"]


def test_no_collection_can_come_while_frames_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    listed = sys._current_frames

    def list_frames() -> Any:
        seen.append(gc.isenabled())
        return listed()

    monkeypatch.setattr(sys, "_current_frames", list_frames)
    thread_stacks(None)
    assert seen == [False]
    assert gc.isenabled()

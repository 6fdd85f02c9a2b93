from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from vramscope.history.no_collection import current_frames, no_collection


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()


def test_nothing_is_collected_inside_and_all_is_as_before_then() -> None:
    def interrupted() -> None:
        with no_collection():
            assert not gc.isenabled()
            raise KeyboardInterrupt

    gc.enable()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert gc.isenabled()
    gc.disable()
    with no_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_a_thread_that_leaves_first_lets_the_other_finish() -> None:
    gc.enable()
    with no_collection():
        with no_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_child_forked_meanwhile_collects_its_garbage() -> None:
    """A worker of a ``DataLoader``: the thread that would let it collect again is not in there."""
    is_inside, leave = threading.Event(), threading.Event()

    def keep() -> None:
        with no_collection():
            is_inside.set()
            leave.wait(30)

    gc.enable()
    thread = threading.Thread(target=keep)
    thread.start()
    try:
        assert is_inside.wait(30)
        pid = os.fork()
        if not pid:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        leave.set()
        thread.join()
    assert gc.isenabled()


def test_frames_of_all_threads_are_listed_while_nothing_is_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered, leave = threading.Event(), threading.Event()
    was_on: list[bool] = []
    listed = sys._current_frames

    def list_frames() -> dict[int, FrameType]:
        was_on.append(gc.isenabled())
        return listed()

    def other_thread() -> None:
        entered.set()
        leave.wait(30)

    monkeypatch.setattr(sys, "_current_frames", list_frames)
    thread = threading.Thread(target=other_thread)
    thread.start()
    try:
        assert entered.wait(30)
        frames = current_frames()
        assert frames[threading.get_ident()] is sys._getframe()
        assert thread.ident in frames
        frames.clear()
    finally:
        leave.set()
        thread.join()
    assert was_on == [False]
    assert gc.isenabled()

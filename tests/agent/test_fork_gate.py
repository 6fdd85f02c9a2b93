from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from vramscope import fork_gate
from vramscope.fork_gate import no_fork


@contextmanager
def inside(until: threading.Event) -> Generator[None]:
    """Another thread that stays inside until it is told, or the block is over."""
    is_inside = threading.Event()

    def stay() -> None:
        with no_fork():
            is_inside.set()
            until.wait(20)

    thread = threading.Thread(target=stay)
    thread.start()
    assert is_inside.wait(10)
    try:
        yield
    finally:
        until.set()
        thread.join(10)


def fork(in_child: Callable[[], bool] = lambda: True) -> int:
    """Exit code of a child that does this."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        os._exit(0 if in_child() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def enter() -> bool:
    with no_fork():
        return True


def test_a_fork_waits_until_nobody_is_inside() -> None:
    leave, order = threading.Event(), list[str]()

    def forks() -> None:
        fork()
        order.append("forked")

    thread = threading.Thread(target=forks)
    with inside(leave):
        thread.start()
        thread.join(0.1)  # it would be through by now if nothing held it back
        order.append("left")
        leave.set()
        thread.join(10)
    assert order == ["left", "forked"]


def test_a_fork_waits_for_a_limited_time_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(fork_gate, "FORK_WAITS_S", 0.05)
    leave = threading.Event()
    with inside(leave):
        assert fork() == 0
        monkeypatch.setattr(time, "sleep", slept.append)
        assert fork() == 0
    assert slept == []


def test_nobody_enters_while_the_process_forks() -> None:
    entered = threading.Event()

    def go_in() -> None:
        with no_fork():
            entered.set()

    thread = threading.Thread(target=go_in)
    fork_gate._before_fork()
    thread.start()
    thread.join(0.05)
    assert not entered.is_set()
    fork_gate._after_fork_in_parent()
    assert entered.wait(10)
    thread.join(10)


def test_who_is_inside_may_fork_itself() -> None:
    with no_fork():
        assert fork(enter) == 0


def test_in_the_child_nothing_is_left_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_gate, "FORK_WAITS_S", 0.01)
    leave = threading.Event()
    with inside(leave):
        monkeypatch.setattr(fork_gate, "FORK_WAITS_S", 60.0)
        for stay in fork_gate._inside:
            stay.is_waited_for = False
        assert fork(lambda: not fork_gate._inside and fork() == 0 and enter()) == 0


def test_an_exception_leaves_it() -> None:
    with pytest.raises(OSError, match="of the driver"), no_fork():
        raise OSError("of the driver")
    assert not fork_gate._inside


def test_threads_do_not_wait_for_each_other() -> None:
    leave = threading.Event()
    with inside(leave):
        assert enter()

"""Others get Python's lock late, then as before: also in a child that was forked meanwhile."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from vramscope.holders.others_wait import HOLD_S, others_wait


def test_others_wait_and_then_all_is_as_before() -> None:
    before_s = sys.getswitchinterval()

    def interrupted() -> None:
        with others_wait(), others_wait():
            assert sys.getswitchinterval() == pytest.approx(HOLD_S)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert sys.getswitchinterval() == before_s


def test_a_child_forked_meanwhile_switches_threads_as_before() -> None:
    is_inside, leave = threading.Event(), threading.Event()
    before_s = sys.getswitchinterval()

    def look() -> None:
        with others_wait():
            is_inside.set()
            leave.wait(30)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        assert is_inside.wait(30)
        pid = os.fork()
        if not pid:
            os._exit(0 if sys.getswitchinterval() == before_s else 1)
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        leave.set()
        thread.join()
    assert sys.getswitchinterval() == before_s

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from vramscope.emulation import main_thread
from vramscope.emulation.main_thread import run_on_main_thread


def from_another_thread(function: Callable[[], bool], timeout_s: float = 20) -> list[bool]:
    """What comes of it, while this thread, the main one, runs Python."""
    results: list[bool] = []
    thread = threading.Thread(
        target=lambda: results.append(run_on_main_thread(function, timeout_s))
    )
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
    return results


def test_it_runs_on_the_main_thread() -> None:
    threads: list[int] = []

    def function() -> bool:
        threads.append(threading.get_ident())
        return True

    assert from_another_thread(function) == [True]
    assert threads == [threading.get_ident()]
    assert main_thread._pending == []


def test_it_is_tried_again_until_it_works() -> None:
    tries = iter([False, False, True])
    assert from_another_thread(lambda: next(tries)) == [True]
    assert list(tries) == []


def test_it_gives_up_in_the_end() -> None:
    assert from_another_thread(lambda: False, timeout_s=0.05) == [False]
    assert main_thread._pending == []


def test_a_main_thread_that_is_not_in_python_calls_it_later() -> None:
    called: list[bool] = []
    results: list[bool] = []
    reading, writing = os.pipe()

    def function() -> bool:
        called.append(True)
        return True

    def give_up() -> None:
        while sys._current_frames()[main].f_code is not block.__code__:
            time.sleep(0.001)
        results.append(run_on_main_thread(function, 0.05))
        os.write(writing, b"!")

    def block() -> None:
        os.read(reading, 1)

    main = threading.get_ident()
    thread = threading.Thread(target=give_up)
    thread.start()
    block()
    thread.join(20)
    deadline_s = time.monotonic() + 20
    while main_thread._pending and time.monotonic() < deadline_s:
        time.sleep(0.001)
    os.close(reading)
    os.close(writing)
    assert (results, called) == ([False], [True])
    assert main_thread._pending == []

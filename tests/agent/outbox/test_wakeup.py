from __future__ import annotations

import threading

from vramscope.outbox.wakeup import Wakeup


def test_waiting_without_a_set_ends_with_the_time() -> None:
    assert not Wakeup().wait(0.01)


def test_a_set_before_the_wait_is_not_missed_and_counts_once() -> None:
    wakeup = Wakeup()
    wakeup.set()
    wakeup.set()
    assert wakeup.wait(0)
    assert not wakeup.wait(0)


def test_a_set_ends_a_wait_of_another_thread() -> None:
    wakeup = Wakeup()
    woken = threading.Event()

    def wait() -> None:
        if wakeup.wait(10):
            woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    wakeup.set()
    assert woken.wait(20)
    thread.join()

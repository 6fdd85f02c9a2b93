"""What watching costs is counted, thread by thread."""

from __future__ import annotations

import threading
import time

from vramscope.collectors.self_cost import SelfCost


def burn(cpu_ns: int) -> None:
    start_ns = time.thread_time_ns()
    while time.thread_time_ns() - start_ns < cpu_ns:
        pass


def test_a_registered_thread_is_counted_while_it_runs_and_after_it_ended() -> None:
    cost = SelfCost(lambda: 0)
    burned, finish = threading.Event(), threading.Event()

    def work() -> None:
        burn(5_000_000)
        cost.register_thread()
        burn(20_000_000)
        burned.set()
        finish.wait(10)
        cost.unregister_thread()

    thread = threading.Thread(target=work)
    thread.start()
    assert burned.wait(10)
    while_running_ns = cost.cpu_ns()
    finish.set()
    thread.join(10)
    assert 20_000_000 <= while_running_ns <= cost.cpu_ns() < 25_000_000


def test_other_threads_of_the_job_are_not_counted() -> None:
    cost = SelfCost(lambda: 0)
    burn(5_000_000)
    assert cost.cpu_ns() == 0


def test_hooks_and_the_transport_are_added() -> None:
    cost = SelfCost(lambda: 300)
    cost.add_inline_ns(20)
    cost.add_inline_ns(1)
    assert cost.cpu_ns() == 321

"""What watching costs is counted, and never as more than the time it took."""

from __future__ import annotations

import threading
import time

import pytest

from vramscope.collectors.self_cost import CpuMeter, ReleasedTime, SelfCost


def burn(cpu_ns: int) -> None:
    start_ns = time.thread_time_ns()
    while time.thread_time_ns() - start_ns < cpu_ns:
        pass


def test_work_is_counted_and_waiting_is_not() -> None:
    meter = CpuMeter()
    time.sleep(0.05)
    meter.begin()
    burn(5_000_000)
    assert 5_000_000 <= meter.end() < 50_000_000
    assert meter.end() < 5_000_000


def test_a_clock_that_jumps_by_whole_ticks_charges_the_time_that_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpu_ns, wall_ns = 0, 0
    monkeypatch.setattr(time, "thread_time_ns", lambda: cpu_ns)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: wall_ns)
    meter = CpuMeter()
    wall_ns = 100_000_000
    meter.begin()
    wall_ns += 300_000
    cpu_ns = 10_000_000
    assert meter.end() == 400_000


def test_sampler_hooks_and_transport_are_added() -> None:
    cost = SelfCost(lambda: 300)
    cost.add_sampler_ns(20)
    cost.add_sampler_ns(1)
    cost.add_hook_ns(4000)
    assert cost.cpu_ns() == 4321


def test_a_part_of_its_own_is_taken_from_the_part_that_it_runs_in() -> None:
    cost = SelfCost(lambda: 3_000)
    with cost.part("map", within="sampler"):
        burn(5_000_000)
    cost.add_sampler_ns(7_000_000 + int(cost.cpu_ns() == 3_000))
    parts = cost.parts_us()
    assert parts["map"] >= 5_000
    assert parts["sampler"] <= 2_000
    assert parts["transport"] == 3
    with cost.part("snapshots"):
        burn(2_000_000)
    assert cost.parts_us()["snapshots"] >= 2_000
    assert cost.cpu_ns() >= 9_003_000


def test_a_part_is_counted_also_when_it_fails() -> None:
    cost = SelfCost(lambda: 0)

    def fail() -> None:
        with cost.part("census"):
            burn(2_000_000)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert cost.parts_us()["census"] >= 2_000


def test_turns_and_how_long_they_held_the_gil() -> None:
    cost = SelfCost(lambda: 0)
    cost.add_sampler_ns(20, 1_500)
    cost.add_sampler_ns(20, 500)
    assert (cost.turns, cost.held_ns) == (2, 2_000)


def test_released_time_is_that_of_one_thread() -> None:
    released = ReleasedTime()
    released.follow_this_thread()
    other = threading.Thread(target=lambda: released.add(0))
    other.start()
    other.join()
    assert released.ns == 0
    released.add(time.perf_counter_ns() - 1_000)
    assert released.ns >= 1_000

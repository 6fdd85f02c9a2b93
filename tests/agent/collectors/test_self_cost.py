"""What watching costs is counted, and never as more than the time it took."""

from __future__ import annotations

import time

import pytest

from vramscope.collectors.self_cost import CpuMeter, SelfCost


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

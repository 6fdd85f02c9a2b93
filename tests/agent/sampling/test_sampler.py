"""The sampler's rows, its clock, its budget, and what it does for the other parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from tests.support.recording_outbox import RecordingOutbox
from vramscope.collectors.allocator import ALL_FIELDS, DEFAULT_KEYS, AllocatorCounters
from vramscope.collectors.collector import Collector
from vramscope.collectors.garbage_collection import NAMES as GC_NAMES
from vramscope.collectors.garbage_collection import GarbageCollection
from vramscope.collectors.host import NAMES as HOST_NAMES
from vramscope.collectors.host import HostCollector
from vramscope.collectors.self_cost import SelfCost
from vramscope.commands.handlers import CommandHandlers
from vramscope.commands.queue import CommandQueue
from vramscope.devices.device import DeviceMemory
from vramscope.memory_map.memory_map import NAMES as MAP_NAMES
from vramscope.notices import Notices
from vramscope.phases.phases import Phases
from vramscope.sampling.clock import Clock
from vramscope.sampling.sampler import THREAD_NAME, Sampler
from vramscope.steps.even_rise import LEAST_STEPS
from vramscope.steps.tracker import StepTracker
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import AgentStatus, Command
from vramscope_protocol.series import SERIES

OTHERS = 14 + len(HOST_NAMES) + len(GC_NAMES)
"""Columns of a row that are no counters of the allocator."""


class Rig:
    """A sampler with all its parts, over a fake device."""

    def __init__(
        self,
        clock: Clock | None = None,
        fields: tuple[str, ...] | None = None,
        collectors: Sequence[Collector] = (),
        **options: Any,
    ) -> None:
        self.clock = clock or FakeClock()
        self.device = FakeDevice()
        self.outbox = RecordingOutbox()
        self.notices = Notices()
        self.statuses: list[AgentStatus] = []
        self.status_came = threading.Event()
        self.offered: Callable[[], object] = lambda: None
        counters = AllocatorCounters(fields)
        self_cost = SelfCost(lambda: 0)
        self.commands = CommandQueue(
            CommandHandlers(self.device), clock=self.clock, emit=self.outbox.put
        )
        self.phases = Phases(self.clock, self.outbox.put, self.notices)
        self.steps = StepTracker(
            self.device,
            counters,
            self.outbox,
            clock=self.clock,
            notices=self.notices,
            self_cost=self_cost,
            phases=self.phases,
            run_commands=self.commands.run_at_boundary,
        )
        self.sampler = Sampler(
            self.device,
            counters,
            self.outbox,
            clock=self.clock,
            steps=self.steps,
            phases=self.phases,
            commands=self.commands,
            collectors=collectors or (HostCollector(self.clock), GarbageCollection()),
            self_cost=self_cost,
            notices=self.notices,
            offer_status=self._take_status,
            **options,
        )

    def _take_status(self, status: AgentStatus) -> None:
        self.offered()
        self.statuses.append(status)
        self.status_came.set()

    def rows(self) -> list[dict[str, Any]]:
        self.sampler.flush()
        return self.outbox.rows("sample")


class FakeRig(Rig):
    """The same with a clock that the test moves."""

    def __init__(self, **options: Any) -> None:
        self.fake_clock = FakeClock()
        super().__init__(self.fake_clock, **options)

    def run(self, seconds: float, step_s: float = 0.1) -> None:
        """Turn as often as the thread would."""
        for _ in range(round(seconds / step_s)):
            self.sampler.tick()
            self.fake_clock.advance(step_s)


def test_a_row_has_every_series_that_is_sampled() -> None:
    rig = FakeRig()
    rig.device.stats = nested_stats(allocated_bytes=77)
    rig.device.memory = DeviceMemory(1000, 400, 600, 300, 50, 99, 250_000, 61)
    rig.steps.mark_step()
    rig.sampler.tick()
    (row,) = rig.rows()
    steps = {name for name in SERIES if name.startswith(("step.", "part.", "category."))}
    assert set(row) == set(SERIES) - steps - set(MAP_NAMES)  # no map is watched here
    assert row["time_ns"] == rig.clock.time_ns()
    assert row["step"] == 1
    assert row["allocated_bytes.all.current"] == 77
    assert [row[name] for name in SERIES if name.startswith("device.")] == [
        1000,
        400,
        600,
        300,
        50,
        99,
        250_000,
        61,
    ]
    assert row["agent.sample_us"] == 0


def test_without_a_device_the_host_is_sampled_and_the_rest_unknown() -> None:
    rig = FakeRig()
    rig.device.stats = None
    rig.device.memory = DeviceMemory()
    rig.sampler.tick()
    (row,) = rig.rows()
    assert {row[name] for name in DEFAULT_KEYS} == {UNKNOWN}
    assert row["device.used_bytes"] == UNKNOWN
    assert row["host.rss_bytes"] > 0


def test_all_counters_are_a_new_table_once_the_allocator_is_up() -> None:
    rig = FakeRig(fields=ALL_FIELDS)
    rig.device.stats = None
    rig.run(0.2)
    rig.device.stats = nested_stats((2, 11))
    rig.run(0.2)
    rig.sampler.flush()
    assert [len(table.fields) for table in rig.outbox.tables.values()] == [
        len(DEFAULT_KEYS) + OTHERS,
        122 + OTHERS,
    ]


def test_rows_leave_twice_a_second_and_status_once() -> None:
    rig = FakeRig()
    rig.run(10)
    assert 19 <= len(rig.outbox.batches("sample")) <= 21
    # The transport wakes up no oftener, whatever there is to send.
    assert 19 <= rig.outbox.sends <= 21
    assert len(rig.rows()) == 100
    assert len(rig.statuses) == 10
    assert 19 <= rig.outbox.spills <= 21


def test_a_status_goes_with_rows_and_wakes_nobody_by_itself() -> None:
    rig = FakeRig()
    sends: list[int] = []
    rig.offered = lambda: sends.append(rig.outbox.sends)
    rig.run(2.5)
    # Each came before the rows of its turn were handed over, and there is no turn without rows.
    assert sends == [0, 2, 4]
    assert rig.outbox.sends == 5


def test_step_rows_leave_with_the_samples() -> None:
    rig = FakeRig()
    rig.run(0.1)
    rig.steps.mark_step()
    rig.run(0.5)
    assert [row["step"] for row in rig.outbox.rows("step")] == [1]


def test_the_status_tells_rate_cost_and_what_is_degraded() -> None:
    rig = FakeRig()
    rig.outbox.memory_bytes, rig.outbox.spool_bytes = 5, 6
    rig.notices.note("x", "NVML not found")
    rig.run(1.1)
    status = rig.statuses[-1]
    assert status.rate_hz == 10.0
    assert status.notes == ["NVML not found"]
    assert (status.outbox_bytes, status.spool_bytes) == (5, 6)
    assert 0 <= status.cost_fraction < 1


def test_after_a_minute_without_the_gil_there_is_no_burst() -> None:
    rig = FakeRig()
    rig.run(1)
    rig.fake_clock.advance(60)
    rig.run(1)
    times = [row["time_ns"] for row in rig.rows()]
    assert len(times) == 20
    assert times == sorted(times)
    assert times[10] - times[9] > 60e9


def test_reading_commands_run_and_late_ones_expire_on_the_tick() -> None:
    rig = FakeRig()
    rig.commands.submit(Command(id="a", name="stats"))
    rig.commands.submit(Command(id="b", name="empty_cache", deadline_s=1))
    rig.run(2)
    assert rig.outbox.states("a") == ["queued", "running", "done"]
    assert rig.outbox.states("b") == ["queued", "expired"]


@pytest.mark.expects_guarded_errors
def test_a_collector_that_fails_costs_its_row_and_nothing_else() -> None:
    rig = FakeRig()

    class Broken(FakeDevice):
        def device_memory(self) -> DeviceMemory:
            raise OSError("driver gone")

    rig.commands.submit(Command(id="a", name="stats"))
    rig.sampler._device = Broken()
    rig.run(1.1)
    assert rig.rows() == []
    assert rig.outbox.states("a")[-1] == "done"
    assert rig.statuses[-1].guard_errors > 0


def test_the_rate_is_capped_and_can_be_changed() -> None:
    rig = FakeRig(rate_hz=5000.0)
    rig.run(1.1)
    assert rig.statuses[-1].rate_hz == 100.0
    rig.sampler.set_rate_hz(2.0)
    rig.run(1.1)
    assert rig.statuses[-1].rate_hz == 2.0
    assert rig.sampler.rates_hz == (2.0, 2.0)


def test_between_two_seldom_samples_it_can_be_woken_for_a_command() -> None:
    rig = Rig(Clock(), rate_hz=0.1)
    asked = threading.Event()

    def summary() -> str:
        asked.set()
        return "a summary"

    rig.device.memory_summary = summary  # type: ignore[method-assign]
    rig.sampler.start()
    try:
        assert rig.status_came.wait(10)  # of its first turn; the next one comes in ten seconds
        rig.commands.submit(Command("c", "memory_summary"))
        rig.sampler.wake()
        assert asked.wait(5)
    finally:
        assert rig.sampler.stop(5.0)


def test_a_rate_lowered_by_the_budget_is_noted() -> None:
    rig = FakeRig()
    for _ in range(120):
        rig.run(0.1)
        rig.sampler._account(5_000_000, 0)
    assert rig.statuses[-1].rate_hz == 1.0
    assert rig.statuses[-1].notes == ["sampling at 1.0 Hz to stay within 0.5% of a core"]


def test_looking_at_the_map_does_not_slow_the_sampling() -> None:
    rig = FakeRig()
    for _ in range(120):
        rig.run(0.1)
        rig.sampler._account(5_000_000, 0, map_ns=4_990_000)
    assert rig.statuses[-1].rate_hz == 10.0


def wait_for(condition: Callable[[], bool], event: threading.Event) -> None:
    for _ in range(200):
        if condition():
            return
        event.wait(0.05)
        event.clear()
    pytest.fail("did not happen in time")


def test_the_thread_samples_and_stops_with_every_row_flushed() -> None:
    rig = Rig(Clock(), rate_hz=100.0, cost_budget=0.0)
    rig.sampler.start()
    try:
        assert rig.status_came.wait(10)
        threads = [each for each in threading.enumerate() if each.name == THREAD_NAME]
        assert [thread.daemon for thread in threads] == [True]
        rig.steps.mark_step()
    finally:
        assert rig.sampler.stop(5.0)
    rows = rig.outbox.rows("sample")
    assert rows
    assert [row["time_ns"] for row in rows] == sorted(row["time_ns"] for row in rows)
    assert [row["step"] for row in rig.outbox.rows("step")] == [1]
    assert rig.outbox.lost == []


def test_a_sample_that_is_asked_for_does_not_wait_for_its_turn() -> None:
    rig = Rig(Clock(), rate_hz=0.01, cost_budget=0.0)  # its own turns: one, then none for 100 s
    assert not rig.sampler.sample_now(0.01), "nothing samples before the start"
    rig.sampler.start()
    try:
        assert rig.status_came.wait(10)
        rig.device.stats = nested_stats(allocated_bytes=4096)
        assert rig.sampler.sample_now(10)
    finally:
        assert rig.sampler.stop(5.0)
    assert [row["allocated_bytes.all.current"] for row in rig.outbox.rows("sample")][-1] == 4096
    assert not rig.sampler.sample_now(0.01), "nothing samples after the end"


def test_the_thread_counts_its_own_cost() -> None:
    rig = Rig(Clock(), rate_hz=100.0, cost_budget=0.0)
    rig.sampler.start()
    try:
        wait_for(lambda: len(rig.outbox.batches("sample")) > 1, rig.status_came)
    finally:
        rig.sampler.stop(5.0)
    assert rig.outbox.rows("sample")[-1]["agent.cpu_us"] > 0


def test_a_stuck_thread_does_not_hold_up_the_end() -> None:
    rig = Rig(Clock())
    release = threading.Event()
    entered = threading.Event()

    class Stuck(FakeDevice):
        def memory_stats(self) -> Any:
            entered.set()
            release.wait(10)
            return None

    rig.sampler._poller._device = Stuck()
    rig.sampler.start()
    try:
        assert entered.wait(10)
        assert not rig.sampler.stop(0.01)
    finally:
        release.set()


def test_steps_in_which_memory_rises_fast_leave_at_once() -> None:
    rig = FakeRig()
    rig.fake_clock.advance(1.0)
    rig.sampler.tick()  # whatever is due leaves

    def rows_after_rising_by(step_bytes: int) -> int:
        for step in range(1 + LEAST_STEPS):
            rig.device.stats = nested_stats(allocated_bytes=step * step_bytes)
            rig.steps.mark_step()
        rig.sampler.tick()
        return len(rig.outbox.rows("step"))

    rig.steps.mark_step()  # the columns are known from here on
    assert rows_after_rising_by(100) == 0
    assert rows_after_rising_by(1 << 20) == 1 + 2 * (1 + LEAST_STEPS)

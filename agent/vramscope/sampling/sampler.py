"""The sampler thread: reads the collectors on a clock, within a budget of its own CPU time.

Wiring (agent.py): construct with every part below, ``start``; at the end ``stop``, which joins
the thread and then flushes the last rows into the outbox, before the goodbye is put there. The
sampler drives the others: each turn runs the commands that only read and lets late ones expire;
twice a second rows are flushed, the outbox spills and the transport is woken, once; every second
time the step hooks are looked after first, and the status goes with the rows.

A turn costs little by itself (7 us) and much by coming seldom: with cold caches, and with the
wake-up, 100 to 250 us of CPU time. So a turn does nothing that could be done less often.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from vramscope.collectors.allocator import AllocatorCounters, Layout, StatsPoller
from vramscope.collectors.collector import Collector
from vramscope.collectors.self_cost import CpuMeter, SelfCost
from vramscope.commands.queue import CommandQueue
from vramscope.devices.caching_allocator import Stats
from vramscope.devices.device import Device, DeviceMemory
from vramscope.guard import guarded, guarded_call
from vramscope.memory_map.memory_map import MemoryMap
from vramscope.notices import Notices
from vramscope.phases.phases import Phases
from vramscope.processes.attached import mark_this_thread
from vramscope.sampling.clock import Clock, Deadlines
from vramscope.sampling.cost_budget import CostBudget
from vramscope.sampling.rows import FieldSet, Row, RowBuffer, RowSink
from vramscope.sampling.status import StatusOutbox, StatusReport
from vramscope.steps.tracker import StepTracker
from vramscope_protocol.account import MemoryPart, ProcessMemory
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import AgentStatus, Field
from vramscope_protocol.series import PHASE, STEP, TIME_NS, unit_of

THREAD_NAME: Final = "vramscope-sampler"
MAX_RATE_HZ: Final = 100.0
FLUSH_INTERVAL_S: Final = 0.5
"""What is sent is at least this far behind, and each time wakes a thread: 0.1 to 0.3 ms of it."""
STATUS_INTERVAL_S: Final = 1.0

_DEVICE_NAMES: Final = (
    "device.total_bytes",
    "device.used_bytes",
    "device.free_bytes",
    "device.process_bytes",
    "device.other_bytes",
    "device.utilization_percent",
    "device.power_mw",
    "device.temperature_c",
)
_AGENT_NAMES: Final = ("agent.sample_us", "agent.cpu_us", "agent.gil_us")


class SamplerOutbox(RowSink, StatusOutbox, Protocol):
    """What the sampler needs of the outbox."""

    def spill(self) -> None:
        """Move what does not fit in memory to disk."""
        ...

    def send(self) -> None:
        """Have what was put sent."""
        ...


class Sampler:
    """Samples one device.

    Args:
        device: what is sampled.
        counters: which allocator counters a row has.
        outbox: takes the rows.
        clock: for times and deadlines.
        steps: knows the step, and has rows of its own to flush.
        phases: knows the phase, and has events of its own to tell.
        commands: runs what only reads.
        collectors: what else adds columns to a row.
        self_cost: what the agent costs.
        notices: what is degraded.
        offer_status: takes the agent's status, about once a second.
        memory_map: looks at the segments when it is time, within a budget of its own.
        on_memory: told at each sample what the allocator and the driver say.
        processes: the processes on the device; asked for each status.
        outside: what this process holds outside of PyTorch's allocator; asked for each status.
        rate_hz: samples a second, at most 100.
        cost_budget: CPU time allowed to this thread, as a fraction of one core.
    """

    def __init__(
        self,
        device: Device,
        counters: AllocatorCounters,
        outbox: SamplerOutbox,
        *,
        clock: Clock,
        steps: StepTracker,
        phases: Phases,
        commands: CommandQueue,
        collectors: Sequence[Collector] = (),
        self_cost: SelfCost,
        notices: Notices,
        offer_status: Callable[[AgentStatus], None],
        memory_map: MemoryMap | None = None,
        on_memory: Callable[[Stats | None, DeviceMemory], None] | None = None,
        processes: Callable[[], list[ProcessMemory]] = list,
        outside: Callable[[], list[MemoryPart]] = list,
        rate_hz: float = 10.0,
        cost_budget: float = 0.005,
    ) -> None:
        self._device = device
        self._counters = counters
        self._outbox = outbox
        self._clock = clock
        self._steps = steps
        self._phases = phases
        self._commands = commands
        self._collectors = tuple(collectors)
        self._self_cost = self_cost
        self._notices = notices
        self._offer_status = offer_status
        self._map = memory_map
        self._on_memory = on_memory
        self._poller = StatsPoller(device, clock, notices)
        self._rows = RowBuffer("sample", outbox)
        self._columns: tuple[Layout, list[tuple[str, ...]], FieldSet] | None = None
        self._taken = 0
        self._budget = CostBudget(min(rate_hz, MAX_RATE_HZ), cost_budget)
        now_ns = clock.monotonic_ns()
        self._samples = Deadlines(1 / self._budget.rate_hz, now_ns)
        self._flushes = Deadlines(FLUSH_INTERVAL_S, now_ns)
        self._statuses = Deadlines(STATUS_INTERVAL_S, now_ns)
        self._status = StatusReport(
            self._budget,
            self_cost,
            outbox,
            notices,
            now_ns,
            processes=processes,
            outside=outside,
        )
        # Released to wake the thread early. A bare lock, because an Event's wait costs half as
        # much again, at every turn.
        self._wake = threading.Lock()
        self._wake.acquire()
        self._stopping = False
        self._asked: deque[threading.Event] = deque()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        thread.start()
        self._thread = thread

    def stop(self, timeout_s: float) -> bool:
        """End the thread and flush the last rows; whether it ended in time."""
        self._stopping = True
        self._ring()
        ended = True
        if self._thread is not None:
            self._thread.join(timeout_s)
            ended = not self._thread.is_alive()
        if ended:
            # A flush beside a thread that is stuck could send a row twice.
            with guarded("last flush"):
                self.flush()
        return ended

    def sample_now(self, timeout_s: float) -> bool:
        """Have the thread take a sample at once and wait for it; whether it came in time.

        For the moment after a command: cached memory that went back to the device is taken again
        in the next step, often before the next regular sample.
        """
        if self._thread is None or self._stopping:
            return False
        taken = threading.Event()
        self._asked.append(taken)
        self._ring()
        return taken.wait(timeout_s)

    @property
    def rates_hz(self) -> tuple[float, float]:
        """The rate that is wanted, and the one that the cost budget allows now."""
        return self._budget.wanted_rate_hz, self._budget.rate_hz

    def wake(self) -> None:
        """Take a turn now: something is there for this thread to do."""
        self._ring()

    def set_rate_hz(self, rate_hz: float) -> None:
        """Wish for another rate; the budget still holds."""
        self._budget.set_wanted_rate_hz(min(rate_hz, MAX_RATE_HZ))
        self._samples.set_interval_s(1 / self._budget.rate_hz)

    def waiting_rows(self) -> list[Row]:
        """Samples that were not flushed yet, with their fields; any thread."""
        return self._rows.waiting()

    def flush(self) -> None:
        """Hand every row to the outbox, and have it sent."""
        self._rows.flush()
        self._steps.flush()
        self._outbox.send()

    def tick(self) -> None:
        """One turn: a sample, and what is due besides."""
        now_ns = self._clock.monotonic_ns()
        self._samples.take(now_ns)
        asked = len(self._asked)
        guarded_call("sample", self._sample, None)
        for _ in range(asked):
            self._asked.popleft().set()
        if self._commands.has_work:
            with guarded("commands"):
                self._commands.run_on_agent_thread(self._steps.step)
        if self._map is not None:
            guarded_call("memory map", self._map.tick, None)
        if self._statuses.is_due(now_ns):
            self._statuses.take(now_ns)
            guarded_call("step hooks", self._steps.poll, None)
            with guarded("status"):
                self._offer_status(self._status.make(now_ns, self._taken))
        # After the status, which then goes with the rows.
        if self._flushes.is_due(now_ns) or self._steps.rises():
            self._flushes.take(now_ns)
            guarded_call("phases", self._phases.poll, None)
            with guarded("flush"):
                self.flush()
                self._outbox.spill()

    def _run(self) -> None:
        with guarded("sampler thread"):
            mark_this_thread()
            meter, released = CpuMeter(), self._self_cost.released
            released.follow_this_thread()
            while True:
                self._wake.acquire(timeout=self._wait_s())
                if self._stopping:
                    return
                meter.begin()
                released_ns, map_ns = released.ns, self._map_ns()
                self.tick()
                cpu_ns = meter.end()
                held_ns = max(0, meter.wall_ns - (released.ns - released_ns))
                self._account(cpu_ns, held_ns, self._map_ns() - map_ns)

    def _ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # rung by another thread at the same time
            self._wake.release()

    def _wait_s(self) -> float:
        return self._samples.wait_s(self._clock.monotonic_ns())

    def _map_ns(self) -> int:
        return 0 if self._map is None else self._map.spent_ns

    def _account(self, cpu_ns: int, held_ns: int, map_ns: int = 0) -> None:
        self._self_cost.add_sampler_ns(cpu_ns, held_ns)
        if self._budget.account(max(0, cpu_ns - map_ns), self._clock.monotonic_ns()):
            self._samples.set_interval_s(1 / self._budget.rate_hz)

    def _sample(self) -> None:
        start_ns = self._clock.monotonic_ns()
        # Stamped before the values are read: reading the driver's side takes longer.
        time_ns = self._clock.time_ns()
        step = self._steps.step
        phase = self._phases.code()
        stats = self._poller.poll()
        layout, counters = self._counters.read(stats)
        device = self._device.device_memory()
        if self._on_memory is not None:
            self._on_memory(stats, device)
        others: list[int] = []
        names: list[tuple[str, ...]] = []
        for collector in self._collectors:
            values = guarded_call("collector", collector.read, ())
            each = collector.names
            names.append(each)
            # One that fails costs its own columns and no others.
            others += values if len(values) == len(each) else [UNKNOWN] * len(each)
        cpu_us = self._self_cost.cpu_ns() // 1000
        sample_us = (self._clock.monotonic_ns() - start_ns) // 1000
        row = [
            time_ns,
            step,
            phase,
            *counters,
            device.total_bytes,
            device.used_bytes,
            device.free_bytes,
            device.process_bytes,
            device.other_bytes,
            device.utilization_percent,
            device.power_mw,
            device.temperature_c,
            sample_us,
            cpu_us,
            self._self_cost.held_ns // 1000,
            *others,
        ]
        self._rows.append(self._field_set(layout, names), row)
        self._taken += 1

    def _field_set(self, layout: Layout, others: list[tuple[str, ...]]) -> FieldSet:
        columns = self._columns
        if columns is None or columns[0] is not layout or columns[1] != others:
            names = [TIME_NS, STEP, PHASE, *layout.keys, *_DEVICE_NAMES, *_AGENT_NAMES]
            names += (name for each in others for name in each)
            fields = FieldSet([Field(name, "q", unit_of(name)) for name in names])
            columns = self._columns = (layout, others, fields)
        return columns[2]

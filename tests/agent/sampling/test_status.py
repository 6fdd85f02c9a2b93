"""What the status tells of rate, cost, queues, losses and errors."""

from __future__ import annotations

from tests.support.recording_outbox import RecordingOutbox
from vramscope.collectors.self_cost import SelfCost
from vramscope.guard import guarded, set_error_hook
from vramscope.notices import Notices
from vramscope.sampling.cost_budget import CostBudget
from vramscope.sampling.status import StatusReport
from vramscope_protocol.account import MemoryPart, ProcessMemory

SECOND_NS = 1_000_000_000


class Bench:
    """A report with all that it tells of."""

    def __init__(self) -> None:
        self.transport_ns = 0
        self.budget = CostBudget(10.0, 0.005)
        self.cost = SelfCost(lambda: self.transport_ns)
        self.outbox = RecordingOutbox()
        self.notices = Notices()
        self.processes = [ProcessMemory(7, "python", 3)]
        self.outside = [MemoryPart("CUDA context", 5, "measured")]
        self.report = StatusReport(
            self.budget,
            self.cost,
            self.outbox,
            self.notices,
            start_ns=5 * SECOND_NS,
            processes=lambda: self.processes,
            outside=lambda: self.outside,
        )


def test_cost_is_that_since_the_last_status_and_the_first_has_none() -> None:
    bench = Bench()
    bench.cost.add_sampler_ns(900_000_000)
    assert bench.report.make(6 * SECOND_NS, 0).cost_fraction == 0.0
    bench.cost.add_sampler_ns(4_000_000)
    bench.transport_ns = 6_000_000
    assert bench.report.make(8 * SECOND_NS, 0).cost_fraction == 0.005


def test_the_account_is_that_since_attach() -> None:
    bench = Bench()
    bench.cost.add_sampler_ns(3_000_000, held_ns=1_000_000)
    bench.cost.add_hook_ns(2_000_000)
    bench.transport_ns = 6_000_000
    bench.outbox.queued_messages = 4
    bench.outbox.losses.count("spool_full", samples=3, steps=2)
    bench.outbox.losses.count("too_large", messages=1)
    account = bench.report.make(7 * SECOND_NS, 21).account
    assert account is not None
    assert account.elapsed_us == 2_000_000
    assert account.cpu_us == {"sampler": 3000, "hooks": 2000, "transport": 6000}
    assert (account.turns, account.gil_us, account.samples) == (1, 1000, 21)
    assert account.queued_messages == 4
    assert account.lost == {"spool_full": 5, "too_large": 1}
    assert (account.wanted_rate_hz, account.budget_fraction) == (10.0, 0.005)


def test_errors_are_told_by_place() -> None:
    bench = Bench()
    set_error_hook(None)  # as it is in a job
    with guarded("a place of this test"):
        raise ValueError("broken")
    status = bench.report.make(6 * SECOND_NS, 0)
    assert status.account is not None
    assert status.account.errors["a place of this test"] == 1
    assert status.guard_errors == sum(status.account.errors.values())


def test_no_budget_is_told_as_none() -> None:
    bench = Bench()
    bench.budget.fraction = -1.0
    account = bench.report.make(6 * SECOND_NS, 0).account
    assert account is not None
    assert account.budget_fraction == 0.0


def test_a_lowered_rate_is_noted_until_it_is_over() -> None:
    bench = Bench()
    bench.budget.rate_hz = 2.0
    status = bench.report.make(6 * SECOND_NS, 0)
    assert status.notes == ["sampling at 2.0 Hz to stay within 0.5% of a core"]
    bench.budget.fraction = 0.0004
    status = bench.report.make(6 * SECOND_NS + 1, 0)
    assert status.notes == ["sampling at 2.0 Hz to stay within 0.04% of a core"]
    bench.budget.rate_hz = 10.0
    assert bench.report.make(7 * SECOND_NS, 0).notes == []


def test_processes_and_named_parts_are_passed_on() -> None:
    bench = Bench()
    status = bench.report.make(6 * SECOND_NS, 0)
    assert (status.processes, status.outside) == (bench.processes, bench.outside)

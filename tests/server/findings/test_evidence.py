"""What agents send becomes evidence of their present life, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.server_rows import make_rows
from vramscope_analysis.evidence.growth_report import GrowthReport
from vramscope_analysis.evidence.memory_layout import MemoryLayout
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.recorded_window import RecordedWindow
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_protocol.messages import RankInfo
from vramscope_server.findings import evidence as evidence_module
from vramscope_server.findings import growth_answer
from vramscope_server.findings.evidence import GatheredEvidence, step_window
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.rows import Rows

SECOND_NS = 10**9


class Registry:
    """Ranks that a test lets start and end."""

    def __init__(self) -> None:
        self.infos = {rank: self.info(rank) for rank in range(3)}
        self.state: dict[str, Any] = {
            "state": "live",
            "world_size": 3,
            "emulated": True,
            "ranks": [],
        }

    @staticmethod
    def info(rank: int, life: str = "first", started_s: int = 100) -> RankInfo:
        return RankInfo(rank, "node", 1, life=life, process_started_ns=started_s * SECOND_NS)

    def rank_info(self, run_id: str, rank: int) -> RankInfo | None:
        return self.infos.get(rank) if run_id.startswith("run") else None

    def run(self, run_id: str) -> dict[str, Any]:
        return self.state


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def evidence(registry: Registry) -> GatheredEvidence:
    return GatheredEvidence(registry)


def steps(*seconds: int) -> Rows:
    numbers = list(range(1, 1 + len(seconds)))
    return make_rows("step", time_ns=[s * SECOND_NS for s in seconds], step=numbers)


def send(evidence: GatheredEvidence, *seconds: int, rank: int = 0, run_id: str = "run-a") -> None:
    evidence.take_steps(run_id, rank, steps(*seconds), LifeOffset(0, 0))


def ranks(evidence: GatheredEvidence, registry: Registry) -> tuple[RankEvidence, ...]:
    run = evidence.run_evidence("run-a", registry.state, 7)()
    assert (run.now_ns, run.world_size, run.emulated) == (7, 3, True)
    assert {rank.world_size for rank in run.ranks} <= {3}
    return run.ranks


def test_ranks_by_number_and_who_is_new(evidence: GatheredEvidence, registry: Registry) -> None:
    send(evidence, 101, rank=2)
    send(evidence, 101, 102, rank=0)
    assert evidence.begun == [("run-a", 2), ("run-a", 0)]
    assert [(each.rank, len(each.steps)) for each in ranks(evidence, registry)] == [(0, 2), (2, 1)]
    send(evidence, 101, rank=9)  # of a rank that never registered
    assert len(ranks(evidence, registry)) == 2
    evidence.take_samples("run-a", 0, make_rows(time_ns=[101 * SECOND_NS], step=[1]))
    assert len(ranks(evidence, registry)[0].samples) == 1


def test_a_restart_begins_anew_and_knows_when_memory_ran_out_before(
    evidence: GatheredEvidence, registry: Registry
) -> None:
    send(evidence, 101, 102)
    evidence.take_oom("run-a", 0, OomReport("oom-1"))
    registry.infos[0] = registry.info(0, "second", 200)
    send(evidence, 103, 104)  # what the life before still had to deliver
    send(evidence, 201)
    (rank,) = ranks(evidence, registry)
    assert rank.steps.time_ns.tolist() == [201 * SECOND_NS]
    assert [report.id for report in rank.ooms] == ["oom-1"]
    # Attached to again, it is the same process.
    registry.infos[0] = registry.info(0, "second", 200)
    send(evidence, 202)
    assert len(ranks(evidence, registry)[0].steps) == 2


def test_events_of_ranks_are_kept_those_of_the_run_are_not(
    evidence: GatheredEvidence, registry: Registry
) -> None:
    event = {"time_ns": 150 * SECOND_NS, "kind": "mark", "step": 1, "text": "", "data": {}}
    evidence.take_event("run-a", event | {"rank": 0})
    evidence.take_event("run-a", event | {"rank": None})
    (rank,) = ranks(evidence, registry)
    assert [each.time_ns for each in rank.events] == [150 * SECOND_NS]
    registry.infos[0] = registry.info(0, "second", 200)
    evidence.take_event("run-a", event | {"rank": 0})  # the life before told it
    assert ranks(evidence, registry)[0].events == ()


def test_a_clock_that_is_set_back_takes_nothing_away(
    evidence: GatheredEvidence, registry: Registry
) -> None:
    send(evidence, 101)
    send(evidence, 5, 6)  # before the process started, by the clock
    (rank,) = ranks(evidence, registry)
    assert rank.steps.time_ns.tolist() == [101 * SECOND_NS, 5 * SECOND_NS, 6 * SECOND_NS]


def test_an_answer_is_read_once_however_often_its_command_comes(
    evidence: GatheredEvidence, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def report(_told: Any, time_ns: int) -> GrowthReport:
        read.append(time_ns)
        return GrowthReport(time_ns)

    monkeypatch.setattr(growth_answer, "growth_report", report)
    send(evidence, 101)
    receipt = {"state": "done", "time_ns": 150 * SECOND_NS, "result": {}}
    for identity in ("c1", "c1", "c2"):
        command: dict[str, Any] = {"id": identity, "name": "explain_growth", "params": {}}
        evidence.take_command("run-a", command | {"receipts": {"0": receipt, "7": receipt}})
    assert len(read) == 2
    growth = ranks(evidence, registry)[0].growth
    assert growth is not None


def test_of_a_run_that_was_given_up_nothing_is_gathered(
    evidence: GatheredEvidence, registry: Registry
) -> None:
    send(evidence, 101)
    evidence.windows["run-a", 0] = {}
    evidence.give_up("run-a")
    send(evidence, 102)
    assert (evidence.runs(), evidence.windows) == ([], {})
    evidence.forget("run-a")
    send(evidence, 103)
    assert evidence.runs() == ["run-a"]


def test_an_answer_of_a_life_before_says_nothing_of_this_one(
    evidence: GatheredEvidence, registry: Registry
) -> None:
    def answer(second: int) -> dict[str, Any]:
        result = {"notes": ["It grows."], "complete": True}
        receipt = {"state": "done", "time_ns": second * SECOND_NS, "result": result}
        return {"name": "explain_growth", "params": {}, "receipts": {"0": receipt, "7": receipt}}

    evidence.take_command("run-a", answer(150))  # nothing was heard of it yet
    send(evidence, 101)
    evidence.take_command("run-a", answer(50))
    assert ranks(evidence, registry)[0].growth is None
    evidence.take_command("run-a", answer(150))
    growth = ranks(evidence, registry)[0].growth
    assert growth is not None
    assert growth.time_ns == 150 * SECOND_NS


def test_whether_there_is_anything_new(evidence: GatheredEvidence, registry: Registry) -> None:
    send(evidence, 101)
    run = evidence.run("run-a")
    assert run is not None
    every: list[Callable[[], None]] = [
        lambda: send(evidence, 102),
        lambda: evidence.take_oom("run-a", 0, OomReport("oom-1")),
        lambda: evidence.take_trials("run-a", 0, ()),
        lambda: evidence.take_window("run-a", 0, RecordedWindow(MemoryLayout(()), None)),
    ]
    for news in every:
        run.is_new = False
        news()
        assert run.is_new
    run.is_new = False
    evidence.take_status("run-a", 0, {"processes": [], "outside": []})
    assert not run.is_new


def test_an_answer_and_memory_that_begins_to_rise_fast_are_judged_at_once(
    evidence: GatheredEvidence,
) -> None:
    called: list[int] = []
    evidence.on_urgent = lambda: called.append(1)

    def end_steps(first: int, *allocated_mib: int) -> None:
        rows = make_rows(
            "step",
            time_ns=[(101 + first + at) * SECOND_NS for at in range(len(allocated_mib))],
            step=[first + at for at in range(len(allocated_mib))],
            allocated_bytes__all__current=[each << 20 for each in allocated_mib],
        )
        evidence.take_steps("run-a", 0, rows, LifeOffset(0, 0))

    end_steps(1, *([100] * 60))
    run = evidence.run("run-a")
    assert run is not None
    assert not run.is_urgent
    end_steps(61, *range(101, 126))
    assert (run.is_urgent, run.is_new, called) == (True, True, [1])
    run.is_urgent = False
    receipt = {"state": "done", "time_ns": 300 * SECOND_NS, "result": {"notes": ["It grows."]}}
    command: dict[str, Any] = {"id": "c1", "name": "explain_growth", "params": {}}
    evidence.take_command("run-a", command | {"receipts": {"0": receipt}})
    assert (run.is_urgent, called) == (True, [1, 1])


def test_recorded_windows_wait_to_be_looked_into(
    evidence: GatheredEvidence, registry: Registry
) -> None:
    window = {"state": "complete", "mode": "alloc", "rank": 0, "taken_ns": 150 * SECOND_NS}
    evidence.take_snapshot("run-a", window)
    assert evidence.windows == {}
    send(evidence, 101)
    for change in (
        {"state": "receiving"},
        {"mode": "segments"},
        {"rank": None},
        {"taken_ns": 50 * SECOND_NS},
    ):
        evidence.take_snapshot("run-a", window | change)
    assert evidence.windows == {}
    evidence.take_snapshot("run-a", window)
    assert evidence.windows == {("run-a", 0): window}
    trial = SettingsTrial("", True, 1, 1, 0, 0, 0, False, False)
    evidence.take_trials("run-a", 0, (trial,))
    assert ranks(evidence, registry)[0].trials == (trial,)
    read = RecordedWindow(MemoryLayout(()), None)
    evidence.take_window("run-a", 0, read)
    evidence.take_window("run-a", 7, read)
    evidence.take_window("run-b", 0, read)
    assert ranks(evidence, registry)[0].window is read


def test_ranks_that_are_over_and_judged_are_left_out_while_the_run_goes_on(
    evidence: GatheredEvidence, registry: Registry
) -> None:
    for rank in range(3):
        send(evidence, 101, rank=rank)
    run = evidence.run("run-a")
    assert run is not None
    run.closed |= {1, 2}
    assert [rank.rank for rank in ranks(evidence, registry)] == [0]
    send(evidence, 102, rank=1)  # it was not over after all
    assert [rank.rank for rank in ranks(evidence, registry)] == [0, 1]
    registry.state["state"] = "ended"
    assert [rank.rank for rank in ranks(evidence, registry)] == [0, 1, 2]


def test_the_run_that_was_silent_longest_is_forgotten_first(
    evidence: GatheredEvidence, monkeypatch: pytest.MonkeyPatch, registry: Registry
) -> None:
    for number in range(4):
        send(evidence, 101, run_id=f"run-{number}")
    window = {"state": "complete", "mode": "alloc", "rank": 0, "taken_ns": 150 * SECOND_NS}
    evidence.take_snapshot("run-1", window)
    send(evidence, 102, run_id="run-0")
    monkeypatch.setattr(evidence_module, "MAX_RUNS", 2)
    evidence.forget_most_silent()
    assert evidence.runs() == ["run-3", "run-0"]
    assert not evidence.windows
    for run_id in evidence.runs():
        evidence.run_evidence(run_id, registry.state, 7)()
    monkeypatch.setattr(evidence_module, "MAX_BYTES", 10)
    evidence.forget_most_silent()
    assert evidence.runs() == ["run-0"], "the last one stays, whatever it holds"
    evidence.forget("run-0")
    assert evidence.runs() == []


@pytest.mark.parametrize(
    ("count", "window"), [(1, 2048), (16, 2048), (17, 1024), (64, 512), (100_000, 128)]
)
def test_with_many_ranks_fewer_steps_of_each_are_whole(count: int, window: int) -> None:
    assert step_window(count) == window

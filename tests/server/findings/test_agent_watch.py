"""What agents say of themselves becomes a finding, and is forgotten in time."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings import agent_watch
from vramscope_server.findings.agent_watch import MAX_READINGS, AgentWatch


class Board:
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.open: dict[tuple[str, int | None], Finding] = {}
        self.reports = 0

    def is_open(self, run_id: str, rank: int | None, kind: str) -> bool:
        assert kind == "agent_degraded"
        return (run_id, rank) in self.open

    def report(self, run_id: str, rank: int | None, kind: str, finding: Finding | None) -> None:
        self.reports += 1
        if finding is None:
            self.open.pop((run_id, rank), None)
        else:
            self.open[run_id, rank] = finding


def status(second: float, rate_hz: float = 10.0, **account: Any) -> dict[str, Any]:
    return {
        "rate_hz": rate_hz,
        "cost_fraction": 0.004,
        "account": {
            "elapsed_us": int(second * 1e6),
            "wanted_rate_hz": 10.0,
            "budget_fraction": 0.005,
            **account,
        },
    }


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def watch(board: Board) -> AgentWatch:
    return AgentWatch(board)


def test_a_low_rate_is_reported_and_goes(watch: AgentWatch, board: Board) -> None:
    for second in range(1, 15):
        watch.take_status("run-a", 0, status(second, 3.0))
    assert ("run-a", 0) in board.open
    for second in range(15, 50):
        watch.take_status("run-a", 0, status(second))
    assert board.open == {}


def test_while_all_is_well_nothing_is_judged(watch: AgentWatch, board: Board) -> None:
    for second in range(1, 500):
        watch.take_status("run-a", 0, status(second))
    assert board.reports == 1  # the first


def test_losses_are_reported_and_pass_after_five_minutes(watch: AgentWatch, board: Board) -> None:
    for second in range(1, 400):
        watch.take_status("run-a", 0, status(second))
    for second in range(400, 690):
        watch.take_status("run-a", 0, status(second, lost={"spool_full": 1}))
    assert ("run-a", 0) in board.open
    for second in range(690, 720):
        watch.take_status("run-a", 0, status(second, lost={"spool_full": 1}))
    assert board.open == {}


def test_a_process_that_was_started_again_begins_anew(watch: AgentWatch, board: Board) -> None:
    for second in range(1, 100):
        watch.take_status("run-a", 0, status(second, errors={"sample": 4}))
    assert ("run-a", 0) in board.open
    watch.take_status("run-a", 0, status(1.0))
    assert board.open == {}


def test_an_agent_that_keeps_no_account_is_left_alone(watch: AgentWatch, board: Board) -> None:
    watch.take_status("run-a", 0, {"rate_hz": 1.0, "cost_fraction": 0.0, "account": None})
    watch.take_status("run-a", 0, {"rate_hz": 1.0, "cost_fraction": 0.0})
    assert board.reports == 0


def test_what_is_kept_is_bounded(
    watch: AgentWatch, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_watch, "MAX_AGENTS", 3)
    for rank in range(10):
        watch.take_status("run-a", rank, status(1.0))
    assert len(watch._readings) == 3
    for number in range(1000):
        watch.take_status("run-a", 9, status(number / 100))
    assert len(watch._readings["run-a", 9]) <= MAX_READINGS


def test_what_holds_goes_on_over_a_restart_of_the_server(board: Board) -> None:
    before, after = AgentWatch(board), AgentWatch(board)
    for second in range(100, 115):
        before.take_status("run-a", 0, status(second, 3.0))
    for second in range(120, 150):
        after.take_status("run-a", 0, status(second, 3.0))
        assert ("run-a", 0) in board.open


def test_what_is_over_after_a_restart_of_the_server_goes(board: Board) -> None:
    before, after = AgentWatch(board), AgentWatch(board)
    for second in range(100, 115):
        before.take_status("run-a", 0, status(second, 3.0))
    for second in range(120, 131):
        after.take_status("run-a", 0, status(second))
    assert board.open == {}

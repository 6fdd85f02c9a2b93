"""Listens to what the agents say of themselves, and reports when one of them is degraded."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any, Final, Protocol

from vramscope_analysis.diagnosis.agent_degraded import (
    COUNT_WINDOW_S,
    KIND,
    LOW_FOR_S,
    LOW_SHARE,
    AgentReading,
    agent_degraded,
)
from vramscope_analysis.diagnosis.finding import Finding

MAX_READINGS: Final = 400
MAX_AGENTS: Final = 4096
"""Agents that are listened to; beyond it the one that was silent longest is forgotten."""


class Board(Protocol):
    """Where findings are reported."""

    def is_open(self, run_id: str, rank: int | None, kind: str) -> bool:
        """Whether such a finding holds."""
        ...

    def report(self, run_id: str, rank: int | None, kind: str, finding: Finding | None) -> None:
        """Say what holds now."""
        ...


class AgentWatch:
    """Keeps what each agent said in the last minutes.

    Args:
        board: takes what is found.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._readings: OrderedDict[tuple[str, int], deque[AgentReading]] = OrderedDict()

    def take_status(self, run_id: str, rank: int, status: dict[str, Any]) -> None:
        """An agent says how it is doing, about once a second."""
        account = status.get("account")
        if not account:
            return  # an older agent
        reading = _reading(status, account)
        readings = self._kept(run_id, rank, reading)
        # Nearly always all is well: then nothing has to be judged.
        is_well = (
            reading.rate_hz >= LOW_SHARE * reading.wanted_rate_hz
            and reading.errors == readings[0].errors
            and reading.lost == readings[0].lost
        )
        if is_well and len(readings) > 1 and not self._board.is_open(run_id, rank, KIND):
            return
        finding = agent_degraded(readings)
        if finding is None and _is_too_early(readings):
            return  # what a server found that was here before may still hold
        self._board.report(run_id, rank, KIND, finding)

    def _kept(self, run_id: str, rank: int, reading: AgentReading) -> deque[AgentReading]:
        readings = self._readings.get((run_id, rank))
        if readings is None or reading.attached_s < readings[-1].attached_s:
            # Another process, or attached anew: its totals begin again.
            readings = self._readings[run_id, rank] = deque(maxlen=MAX_READINGS)
        self._readings.move_to_end((run_id, rank))
        if len(self._readings) > MAX_AGENTS:
            self._readings.popitem(last=False)
        readings.append(reading)
        # One that is older than the window stays: what is counted is counted from there.
        while len(readings) > 2 and reading.time_s - readings[1].time_s > COUNT_WINDOW_S:
            readings.popleft()
        return readings


def _is_too_early(readings: Sequence[AgentReading]) -> bool:
    """Whether too little was heard of a process, neither long enough nor from its beginning."""
    heard_s = readings[-1].time_s - readings[0].time_s
    return readings[0].attached_s >= LOW_FOR_S and heard_s < LOW_FOR_S


def _reading(status: dict[str, Any], account: dict[str, Any]) -> AgentReading:
    attached_s = account.get("elapsed_us", 0) / 1e6
    return AgentReading(
        # The agent's own time, which stands still with it: what it does not say it cannot judge.
        attached_s,
        attached_s,
        status["rate_hz"],
        account.get("wanted_rate_hz") or status["rate_hz"],
        status["cost_fraction"],
        account.get("budget_fraction", 0.0),
        account.get("errors", {}),
        account.get("lost", {}),
    )

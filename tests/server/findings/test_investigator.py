"""A rank is asked what grows there: one at a time, ever more seldom, as any command is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.server_commands import record_of
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.questions import COMMAND, Question
from vramscope_protocol.commands import CommandState, Receipt
from vramscope_protocol.errors import RATE_LIMITED, VramscopeError
from vramscope_server.commands.record import CommandRecord, RankAnswer
from vramscope_server.commands.request import CommandRequest, Issuer
from vramscope_server.findings import investigator as investigator_module
from vramscope_server.findings.investigator import Investigator
from vramscope_server.findings.record import FindingRecord, opened


class Coordinator:
    """Takes commands, and answers them when the test says so."""

    def __init__(self) -> None:
        self.asked: list[CommandRecord] = []
        self.refuses = False

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> CommandRecord:
        record = record_of(request, run, issuer)
        assert issuer.origin == "server"
        if self.refuses:
            raise VramscopeError(RATE_LIMITED, "too many")
        self.asked.append(record)
        return record

    @property
    def ranks(self) -> list[int]:
        return [record.ranks[0] for record in self.asked]

    def answer(self, state: CommandState = "done") -> None:
        record = self.asked[-1]
        record.answer(record.ranks[0], RankAnswer(state, 1, Receipt(state)))


class Bench:
    """An investigator with a clock that the test moves."""

    def __init__(self) -> None:
        self.coordinator = Coordinator()
        self.now_s = 1000.0
        self.investigator = Investigator(self.coordinator, lambda: self.now_s)
        self.able = set(range(8))

    def look(
        self, *questions: Question, records: list[FindingRecord] | None = None, run_id: str = "r"
    ) -> list[int]:
        state: dict[str, Any] = {
            "ranks": [
                {
                    "rank": rank,
                    "connected": True,
                    "commands": [COMMAND] if rank in self.able else [],
                }
                for rank in range(8)
            ]
        }
        asyncio.run(self.investigator.look(run_id, state, records or [], questions))
        return self.coordinator.ranks


@pytest.fixture
def bench() -> Bench:
    return Bench()


def record(*ranks: int, kind: str = "leak", stage: Any = "confirmed") -> FindingRecord:
    return opened("r", Finding(kind, "info", "It grows.", stage=stage, ranks=ranks), None, 1)


def test_the_most_urgent_question_is_asked_in_its_own_words(bench: Bench) -> None:
    params = {"looks": 3, "every": 7}
    assert bench.look(Question(2, "it grows", params), Question(1, "it grows")) == [2]
    (asked,) = bench.coordinator.asked
    assert (asked.name, asked.params, asked.issued_by) == (COMMAND, params, "vramscope")


def test_one_at_a_time_and_each_later_one_later(bench: Bench) -> None:
    question = Question(0, "it grows")
    bench.look(question)
    bench.now_s += 10_000
    assert bench.look(question) == [0], "it has not answered"
    bench.now_s -= 10_000
    waits: list[float] = []
    for _ in range(4):
        bench.coordinator.answer()
        count, waited_s = len(bench.coordinator.asked), 0.0
        while len(bench.look(question)) == count:
            bench.now_s += 1
            waited_s += 1
        waits.append(waited_s)
    assert waits == [5, 10, 20, 40]
    bench.coordinator.answer()
    bench.now_s += 3600
    count = len(bench.look(question))
    bench.coordinator.answer()
    bench.now_s += 5
    assert len(bench.look(question)) == count + 1, "what was long ago makes nobody wait"


def test_a_rank_that_cannot_answer_or_is_understood_is_not_asked(bench: Bench) -> None:
    bench.able = {1, 3}
    questions = [Question(rank, "it grows") for rank in range(4)]
    assert bench.look(*questions, records=[record(1)]) == [3]
    bench.coordinator.answer()
    bench.now_s += 600
    # The one that was asked less often comes first.
    assert bench.look(*questions, records=[record(stage="suspected")]) == [3, 1]


def test_what_is_kept_does_not_answer_what_grows(bench: Bench) -> None:
    assert bench.look(Question(1, "it grows"), records=[record(1, kind="cycle_growth")]) == []
    assert bench.look(Question(1, "it grows"), records=[record(1, kind="retention")]) == [1]


def test_growing_host_memory_is_asked_about_after_everything_else(bench: Bench) -> None:
    host = record(4, kind="host_growth", stage="suspected")
    assert bench.look(records=[record(4, kind="host_growth")]) == []
    assert bench.look(Question(5, "it grows"), records=[host]) == [5]
    bench.coordinator.answer()
    bench.now_s += 600
    assert bench.look(records=[host]) == [5, 4]
    assert bench.coordinator.asked[-1].params == {"host": True}
    for _ in range(9):
        bench.coordinator.answer()
        bench.now_s += 3600
        bench.look(records=[host])
    assert bench.coordinator.ranks == [5, 4, 4, 4, 4], "not for ever"


def test_a_time_without_an_answer_does_not_count(bench: Bench) -> None:
    host = record(4, kind="host_growth", stage="suspected")
    for _ in range(6):
        bench.look(records=[host])
        bench.coordinator.answer("failed")
        bench.now_s += 3600
    for _ in range(9):
        bench.look(records=[host])
        bench.coordinator.answer()
        bench.now_s += 3600
    assert len(bench.coordinator.asked) == 6 + 4


def test_a_refusal_waits_like_an_answer(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.coordinator.refuses = True
    bench.look(Question(0, "it grows"))
    assert "too many" in caplog.text
    bench.coordinator.refuses = False
    assert bench.look(Question(0, "it grows")) == []
    bench.now_s += 5
    assert bench.look(Question(0, "it grows")) == [0]


def test_runs_are_apart_and_only_so_many_are_remembered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Question(0, "it grows")
    assert bench.look(question, run_id="a") == [0]
    assert bench.look(question, run_id="b") == [0, 0]
    monkeypatch.setattr(investigator_module, "_MAX_RUNS", 1)
    bench.look(question, run_id="c")
    assert len(bench.look(question, run_id="a")) == 4

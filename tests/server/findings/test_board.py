"""Findings are opened, brought up to date, resolved, told and stored; also over a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import open_store
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings import shelf as shelf_module
from vramscope_server.findings.across_ranks import across_ranks
from vramscope_server.findings.board import FindingsBoard
from vramscope_server.findings.judging import Found, Judgement
from vramscope_server.findings.record import FindingRecord
from vramscope_server.store import findings
from vramscope_server.store.database import StoreError
from vramscope_server.store.store import Store

FINDING = Finding("agent_degraded", "info", "Sampling at 4.0 instead of 10 Hz.")
LEAK = Finding("leak", "info", "Memory grows.", stage="suspected", ranks=(0,))
TOLD = replace(LEAK, stage="confirmed", subject="train.py:5", severity="warning")
SECOND_NS = 10**9


class Neighbours:
    """Registry and audience in one."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.changed: list[str] = []

    def run(self, run_id: str) -> dict[str, Any] | None:
        return {"name": "train", "ranks": []}

    def publish_finding(self, run_id: str, finding: dict[str, Any]) -> None:
        assert run_id == finding["run"]
        self.told.append(finding)

    def run_changed(self, run_id: str) -> None:
        self.changed.append(run_id)


class Bench:
    """A board on a store, with a clock that the test moves."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now_ns = 100 * SECOND_NS
        self.neighbours = Neighbours()
        self.board = self.new_board()

    def new_board(self) -> FindingsBoard:
        return FindingsBoard(self.store, self.neighbours, self.neighbours, lambda: self.now_ns)

    def report(self, finding: Finding | None, rank: int = 0) -> None:
        self.board.report("run-a", rank, "agent_degraded", finding)

    def judged(
        self,
        *found: Finding,
        ranks: tuple[int, ...] = (0, 1, 2),
        failures: tuple[str, ...] = (),
        over: tuple[int, ...] = (),
        not_asked: tuple[str, ...] = (),
    ) -> None:
        """What one judge says, two seconds after the last time."""
        self.now_ns += 2 * SECOND_NS
        judgement = Judgement("run-a", frozenset(ranks), not_asked=frozenset(not_asked))
        judgement.found = across_ranks([Found("leak", finding) for finding in found])
        judgement.failures = set(failures)
        self.board.judged(judgement, {0: (1, 500)}, frozenset(over))

    def open_ones(self) -> list[FindingRecord]:
        return self.board.open_of("run-a")

    async def stored(self) -> list[FindingRecord]:
        await self.board.writer.write()
        return await self.store.read(lambda c: findings.list_findings(c, "run-a"))


def on_a_bench(test: Callable[[Bench], Any]) -> Callable[[Path], None]:
    """A test that runs on an event loop with a bench of its own."""

    @asynccontextmanager
    async def bench(folder: Path) -> AsyncGenerator[Bench]:
        store = open_store(folder)
        try:
            yield Bench(store)
        finally:
            store.close()

    def run(tmp_path: Path) -> None:
        async def go() -> None:
            async with bench(tmp_path) as made:
                await test(made)

        asyncio.run(go())

    run.__name__ = test.__name__
    return run


@on_a_bench
async def test_it_is_opened_once_and_told_and_stored(bench: Bench) -> None:
    bench.report(FINDING)
    bench.now_ns += SECOND_NS
    bench.report(FINDING)
    assert [finding["opened_ns"] for finding in bench.neighbours.told] == [100 * SECOND_NS]
    (record,) = await bench.stored()
    assert (record.rank, record.kind, record.resolved_ns) == (0, "agent_degraded", None)
    assert bench.board.is_open("run-a", 0, "agent_degraded")
    assert not bench.board.is_open("run-a", 1, "agent_degraded")


@on_a_bench
async def test_what_holds_again_soon_is_the_same_finding_later_another_one(bench: Bench) -> None:
    bench.report(None)
    assert bench.neighbours.told == []
    bench.report(FINDING)
    bench.now_ns += SECOND_NS
    bench.report(None)
    bench.report(None)
    assert [finding["resolved_ns"] for finding in bench.neighbours.told] == [None, 101 * SECOND_NS]
    bench.now_ns += 600 * SECOND_NS
    bench.report(FINDING)
    (record,) = await bench.stored()
    assert (record.resolved_ns, record.opened_ns) == (None, 100 * SECOND_NS)
    assert [entry["what"] for entry in record.data["history"]] == ["opened", "resolved", "reopened"]
    bench.report(None)
    bench.now_ns += 601 * SECOND_NS
    bench.report(FINDING)
    assert len({record.id for record in await bench.stored()}) == 2


@on_a_bench
async def test_new_words_are_told_at_most_every_ten_seconds(bench: Bench) -> None:
    for rate in range(25):
        bench.report(replace(FINDING, summary=f"Sampling at {rate} Hz."))
        bench.now_ns += SECOND_NS
    summaries = [finding["summary"] for finding in bench.neighbours.told]
    assert summaries == [f"Sampling at {rate} Hz." for rate in (0, 10, 20)]
    (record,) = await bench.stored()
    assert record.summary == "Sampling at 20 Hz."


@on_a_bench
async def test_ranks_are_apart(bench: Bench) -> None:
    bench.report(FINDING, rank=0)
    bench.report(FINDING, rank=1)
    bench.report(None, rank=0)
    stored = {record.rank: record.resolved_ns for record in await bench.stored()}
    assert stored == {0: 100 * SECOND_NS, 1: None}


@on_a_bench
async def test_what_was_open_is_taken_up_after_a_restart(bench: Bench) -> None:
    bench.report(FINDING)
    stored = await bench.stored()
    bench.board = bench.new_board()
    bench.board.adopt(stored)
    bench.board.adopt(stored)  # known by now
    assert bench.board.is_open("run-a", 0, "agent_degraded")
    bench.now_ns += SECOND_NS
    bench.report(None)
    (record,) = await bench.stored()
    assert (record.id, record.resolved_ns) == (stored[0].id, 101 * SECOND_NS)
    # And what was over a moment ago is taken up, too.
    bench.board = bench.new_board()
    bench.board.adopt(await bench.stored())
    bench.report(FINDING)
    assert bench.open_ones()[0].id == stored[0].id


@on_a_bench
async def test_a_suspicion_becomes_a_verdict_under_the_same_id(bench: Bench) -> None:
    bench.judged(LEAK)
    (suspected,) = bench.neighbours.told
    assert (suspected["stage"], suspected["confirmed_ns"]) == ("suspected", None)
    bench.judged(TOLD)
    confirmed = bench.neighbours.told[-1]
    assert confirmed["id"] == suspected["id"]
    assert (confirmed["stage"], confirmed["subject"]) == ("confirmed", "train.py:5")
    assert confirmed["confirmed_ns"] == bench.now_ns
    assert confirmed["updated_ns"] > suspected["updated_ns"]
    assert (suspected["life"], suspected["step_offset"]) == (1, 500)
    # Less is known of it after a restart of the server: that takes nothing back.
    bench.judged(LEAK)
    (record,) = await bench.stored()
    assert (record.stage, record.subject, record.data["step_offset"]) == (
        "confirmed",
        "train.py:5",
        500,
    )


@on_a_bench
async def test_a_suspicion_may_turn_out_to_be_of_another_kind(bench: Bench) -> None:
    bench.judged(LEAK)
    bench.judged(replace(TOLD, kind="retained_exception"))
    (record,) = await bench.stored()
    assert (record.kind, record.opened_ns) == ("retained_exception", 102 * SECOND_NS)


@on_a_bench
async def test_what_is_not_found_three_times_is_over(bench: Bench) -> None:
    bench.judged(LEAK)
    bench.judged()
    bench.judged()
    bench.judged(LEAK)
    for _ in range(2):
        bench.judged()
        assert len(bench.open_ones()) == 1
    bench.judged()
    (record,) = await bench.stored()
    assert (record.state, record.resolved_ns) == ("resolved", bench.now_ns)


@on_a_bench
async def test_once_not_found_is_not_over_however_long_nobody_looked(bench: Bench) -> None:
    bench.judged(LEAK)
    bench.now_ns += 60 * SECOND_NS
    bench.judged()
    bench.judged()
    assert len(bench.open_ones()) == 1
    bench.judged()
    assert bench.open_ones() == []


@on_a_bench
async def test_nobody_looked_nothing_is_over(bench: Bench) -> None:
    bench.judged(LEAK)
    for _ in range(5):
        bench.judged(ranks=(1, 2))
        bench.judged(failures=("leak",))
        bench.judged(not_asked=("leak",))
    assert len(bench.open_ones()) == 1
    bench.report(FINDING)  # of nobody that is asked in turn
    for _ in range(5):
        bench.judged()
    assert [record.kind for record in bench.open_ones()] == ["agent_degraded"]


@on_a_bench
async def test_that_memory_ran_out_is_never_over(bench: Bench) -> None:
    bench.judged(Finding("oom", "critical", "Out of memory at step 5.", subject="x", ranks=(0,)))
    for _ in range(10):
        bench.judged()
    assert [record.kind for record in bench.open_ones()] == ["oom"]


@on_a_bench
async def test_the_same_on_more_and_more_ranks_is_one_finding(bench: Bench) -> None:
    bench.judged(LEAK)
    bench.judged(LEAK, replace(LEAK, ranks=(1,)))
    (record,) = bench.open_ones()
    assert (record.rank, record.ranks) == (None, (0, 1))
    bench.judged(replace(LEAK, ranks=(1,)))
    (record,) = bench.open_ones()
    assert (record.rank, record.ranks) == (1, (1,))
    assert len(await bench.stored()) == 1


@on_a_bench
async def test_that_another_rank_has_it_too_is_told_at_once(bench: Bench) -> None:
    bench.judged(LEAK)
    bench.judged(LEAK, replace(LEAK, ranks=(1,)))
    first, last = bench.neighbours.told
    assert (first["ranks"], last["ranks"]) == ([0], [0, 1])
    assert first["id"] == last["id"]


@on_a_bench
async def test_what_held_to_the_end_stays_the_verdict(bench: Bench) -> None:
    bench.judged(TOLD)
    (record,) = bench.open_ones()
    bench.board.resolve(record, 150 * SECOND_NS, is_final=True)
    assert bench.board.verdict("run-a", False)["finding"] is None
    assert bench.board.verdict("run-a", True)["finding"]["id"] == record.id
    assert bench.board.find(record.id) is record
    # Something comes late, such as a report: the words may change, the state does not.
    later = replace(TOLD, summary="It ran out of memory.")
    bench.judged(later, over=(0, 1, 2))
    (stored,) = await bench.stored()
    assert (stored.state, stored.summary) == ("final", "It ran out of memory.")
    assert stored.resolved_ns == 150 * SECOND_NS
    # The rank was not over after all.
    bench.judged(later)
    assert [one.id for one in bench.open_ones()] == [record.id]


@on_a_bench
async def test_a_finding_that_another_server_goes_on_with_is_forgotten(bench: Bench) -> None:
    bench.judged(LEAK)
    (record,) = bench.open_ones()
    before = len(bench.neighbours.told)
    bench.board.forget(record)
    assert (bench.board.runs(), len(bench.neighbours.told)) == ([], before)
    (stored,) = await bench.stored()
    assert stored.state == "open"


@on_a_bench
async def test_one_that_two_servers_opened_goes_on_as_the_newer(bench: Bench) -> None:
    bench.judged(LEAK)
    (record,) = await bench.stored()
    bench.board = bench.new_board()
    twin = replace(record, id="twin", opened_ns=record.opened_ns + 1)
    bench.board.adopt([record, twin])
    assert [one.id for one in bench.open_ones()] == ["twin"]
    assert {one.id: one.state for one in await bench.stored()}[record.id] == "resolved"
    bench.board = bench.new_board()
    here = replace(twin, id="here", data=twin.data | {"ranks": [0, 1]})
    bench.board.adopt([here])
    bench.board.adopt([replace(here, id="there", data=twin.data | {"ranks": [4, 5]})])
    assert [one.id for one in bench.open_ones()] == ["here"], "those are of other ranks"


@on_a_bench
async def test_who_found_it_is_known_after_a_restart(bench: Bench) -> None:
    bench.judged(LEAK)
    stored = await bench.stored()
    assert [record.judge for record in stored] == ["leak"]
    bench.board = bench.new_board()
    bench.board.adopt(stored)
    for _ in range(4):
        bench.judged()
    assert bench.open_ones() == []


@on_a_bench
async def test_the_list_of_runs_hears_of_it(bench: Bench) -> None:
    bench.judged(LEAK)
    assert bench.neighbours.changed == ["run-a"]
    said = bench.board.verdict("run-a", False)
    assert (said["finding"]["kind"], said["findings_open"]["info"]) == ("leak", 1)
    assert bench.board.verdict("run-b", False)["finding"] is None


@on_a_bench
async def test_a_database_that_refuses_is_tried_again(bench: Bench) -> None:
    async def refuse(_function: Any) -> None:
        raise StoreError("disk full")

    works = bench.store.write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.store, "write", refuse)
        bench.report(FINDING)
        await bench.board.writer.write()
        bench.now_ns += SECOND_NS
        bench.report(None)
        await bench.board.writer.write()
    assert bench.store.write == works
    (record,) = await bench.stored()
    assert record.resolved_ns == 101 * SECOND_NS


@on_a_bench
async def test_there_is_a_bound(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelf_module, "MAX_OPEN", 2)
        for rank in range(3):
            bench.report(FINDING, rank)
    assert [record.rank for record in await bench.stored()] in ([0, 1], [1, 0])


@on_a_bench
async def test_the_last_new_words_are_told_once_they_may_be(bench: Bench) -> None:
    bench.report(FINDING)
    worse = replace(FINDING, severity="warning", summary="12 rows and messages dropped.")
    for _ in range(12):
        bench.now_ns += SECOND_NS
        bench.report(worse)
    assert [finding["severity"] for finding in bench.neighbours.told] == ["info", "warning"]
    (record,) = await bench.stored()
    assert (record.severity, record.summary) == ("warning", worse.summary)


@on_a_bench
async def test_a_clock_that_is_set_back_holds_no_words_up(bench: Bench) -> None:
    bench.report(FINDING)
    bench.now_ns -= 60 * SECOND_NS
    bench.report(replace(FINDING, summary="Sampling at 1.0 instead of 10 Hz."))
    assert len(bench.neighbours.told) == 2

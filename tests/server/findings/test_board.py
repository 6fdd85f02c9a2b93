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
from vramscope_server.findings import board as board_module
from vramscope_server.findings.board import FindingsBoard
from vramscope_server.findings.record import FindingRecord
from vramscope_server.store import findings
from vramscope_server.store.database import StoreError
from vramscope_server.store.store import Store

FINDING = Finding("agent_degraded", "info", "Sampling at 4.0 instead of 10 Hz.")
SECOND_NS = 10**9


class Neighbours:
    """Registry and audience in one."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.ranks: list[dict[str, Any]] = []

    def run(self, run_id: str) -> dict[str, Any] | None:
        return {"ranks": self.ranks} if self.ranks else None

    def publish_finding(self, run_id: str, finding: dict[str, Any]) -> None:
        assert run_id == finding["run"]
        self.told.append(finding)


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

    async def stored(self) -> list[FindingRecord]:
        await self.board.write()
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
async def test_it_is_resolved_when_it_is_over_and_opened_anew_later(bench: Bench) -> None:
    bench.report(None)
    assert bench.neighbours.told == []
    bench.report(FINDING)
    bench.now_ns += SECOND_NS
    bench.report(None)
    bench.report(None)
    assert [finding["resolved_ns"] for finding in bench.neighbours.told] == [None, 101 * SECOND_NS]
    bench.now_ns += SECOND_NS
    bench.report(FINDING)
    stored = await bench.stored()
    assert [record.resolved_ns for record in stored] == [None, 101 * SECOND_NS]
    assert len({record.id for record in stored}) == 2


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
    await bench.board.write()
    bench.board = bench.new_board()
    await bench.board.start()
    assert bench.board.is_open("run-a", 0, "agent_degraded")
    bench.now_ns += SECOND_NS
    bench.report(None)
    await bench.board.stop()
    (record,) = await bench.stored()
    assert record.resolved_ns == 101 * SECOND_NS


@on_a_bench
async def test_it_ends_with_its_rank(bench: Bench) -> None:
    bench.report(FINDING, rank=0)
    bench.report(FINDING, rank=1)
    bench.report(FINDING, rank=2)
    bench.neighbours.ranks = [
        {"rank": 0, "state": "live", "ended_ns": None, "last_seen_ns": 5},
        {"rank": 1, "state": "ended", "ended_ns": 130 * SECOND_NS, "last_seen_ns": 5},
        {"rank": 2, "state": "lost", "ended_ns": None, "last_seen_ns": 110 * SECOND_NS},
    ]
    bench.board.resolve_ended()
    stored = {record.rank: record.resolved_ns for record in await bench.stored()}
    assert stored == {0: None, 1: 130 * SECOND_NS, 2: 110 * SECOND_NS}


@on_a_bench
async def test_a_database_that_refuses_is_tried_again(bench: Bench) -> None:
    async def refuse(_function: Any) -> None:
        raise StoreError("disk full")

    works = bench.store.write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.store, "write", refuse)
        bench.report(FINDING)
        await bench.board.write()
        bench.now_ns += SECOND_NS
        bench.report(None)
        await bench.board.write()
    assert bench.store.write == works
    (record,) = await bench.stored()
    assert record.resolved_ns == 101 * SECOND_NS


@on_a_bench
async def test_there_is_a_bound(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(board_module, "MAX_OPEN", 2)
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

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.server_commands import VIEWER, S, answer, make_command
from vramscope_server.commands import ledger as ledger_module
from vramscope_server.commands.agreement import Agreement
from vramscope_server.commands.ledger import Ledger
from vramscope_server.commands.request import CommandRequest
from vramscope_server.store import audit, command_log, events
from vramscope_server.store.database import StoreError
from vramscope_server.store.store import Store


def test_accepting_writes_the_command_and_its_line_in_the_audit_log_once(store: Store) -> None:
    async def scenario() -> list[bool]:
        ledger = Ledger(store)
        record = make_command(params={"x": 1})
        return [await ledger.accept(record, "10.0.0.9") for _ in range(2)]

    assert asyncio.run(scenario()) == [True, False]
    (row,) = store.read_now(audit.list_audit)
    assert (row["who"], row["address"], row["origin"]) == ("owner", "10.0.0.9", "cli")
    assert (row["time_ns"], row["params"], row["result"]) == (100 * S, {"x": 1}, "accepted")


def test_a_refusal_is_written_with_its_reason(store: Store) -> None:
    request = CommandRequest("empty_cache", dry_run=True)
    asyncio.run(Ledger(store).refuse("r1", request, VIEWER, 5, "no right"))
    (row,) = store.read_now(audit.list_audit)
    assert (row["who"], row["command_id"], row["ranks"]) == ("guest", "", "all")
    assert (row["dry_run"], row["result"]) == (True, "refused: no right")


def test_changes_are_written_by_the_time_it_has_stopped(store: Store) -> None:
    record = make_command([0, 1])

    async def scenario() -> None:
        ledger = Ledger(store)
        ledger.start()
        await ledger.accept(record, "")
        verdict = answer("expired", 131, message="silent")
        verdict.by_server = True
        record.answer(0, verdict)
        ledger.note(record)
        record.answer(1, answer("done", 132))
        ledger.finish(record)
        await ledger.stop()

    asyncio.run(scenario())
    stored = store.read_now(lambda c: command_log.get_command(c, "c1"))
    assert stored is not None
    assert (stored["state"], stored["finished_ns"]) == ("expired", 132 * S)
    # The agent's own receipt is ingest's to store; the server's is ours.
    assert set(stored["receipts"]) == {"0"}
    assert stored["receipts"]["0"]["message"] == "silent"
    assert len(store.read_now(lambda c: events.list_events(c, "r1"))) == 1


def test_what_the_database_refuses_is_written_when_it_is_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "_RETRY_S", 0.01)
    record = make_command()
    original = store.write
    failures = 3

    async def flaky(function: Any) -> Any:
        nonlocal failures
        if failures > 0:
            failures -= 1
            raise StoreError("disk full")
        return await original(function)

    async def scenario() -> None:
        ledger = Ledger(store)
        await ledger.accept(record, "")
        monkeypatch.setattr(store, "write", flaky)
        ledger.start()
        record.answer(0, answer("done"))
        ledger.finish(record)
        await ledger.stop()

    asyncio.run(scenario())
    assert failures == 0
    stored = store.read_now(lambda c: command_log.get_command(c, "c1"))
    assert stored is not None
    assert stored["state"] == "done"
    assert len(store.read_now(lambda c: events.list_events(c, "r1"))) == 1
    assert store.read_now(audit.list_audit)[0]["result"].startswith("done: ")


def test_stopping_does_not_wait_for_a_dead_database(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "_STOP_S", 0.05)

    async def refuse(_function: Any) -> Any:
        raise StoreError("disk full")

    async def scenario() -> None:
        ledger = Ledger(store)
        monkeypatch.setattr(store, "write", refuse)
        ledger.start()
        ledger.note(make_command())
        await asyncio.wait_for(ledger.stop(), 30)
        await asyncio.wait_for(ledger.stop(), 30)

    asyncio.run(scenario())


def test_a_decision_is_written_at_once_and_stays(store: Store) -> None:
    async def scenario() -> list[Agreement]:
        ledger = Ledger(store)
        await ledger.accept(make_command(agreement=Agreement()), "")
        await ledger.note_step("c1", 40)
        undecided = store.read_now(lambda c: command_log.get_command(c, "c1"))
        assert undecided is not None
        assert undecided["agreement"]["at_step"] == 40
        wanted = [Agreement(40, False, "Rank 1 refused.", 5), Agreement(40, True, "", 6)]
        return [await ledger.decide("c1", agreement) for agreement in wanted]

    first, second = asyncio.run(scenario())
    assert first == second == Agreement(40, False, "Rank 1 refused.", 5)

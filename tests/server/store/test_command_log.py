from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import open_store
from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import CommandUpdate
from vramscope_server.store import command_log
from vramscope_server.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    yield store
    store.close()


def command(number: int) -> dict[str, Any]:
    return {
        "id": f"c{number}", "name": "empty_cache", "params": {"a": [1]}, "dry_run": False,
        "ranks": [0, 1], "state": "queued", "issued_by": "me", "origin": "cli",
        "created_ns": number, "deadline_ns": number + 30, "finished_ns": None,
        "note": "", "agreement": None,
    }  # fmt: skip


def test_an_id_is_stored_once(store: Store) -> None:
    assert store.write_now(lambda c: command_log.insert_command(c, "run-a", command(1)))
    again = command(1) | {"name": "stats"}
    assert not store.write_now(lambda c: command_log.insert_command(c, "run-b", again))
    stored = store.read_now(lambda c: command_log.get_command(c, "c1"))
    assert stored == command(1) | {"run": "run-a", "receipts": {}}
    assert store.read_now(lambda c: command_log.get_command(c, "c2")) is None


def test_states_and_what_is_unfinished(store: Store) -> None:
    for number in range(4):
        store.write_now(
            partial(command_log.insert_command, run_id="run-a", command=command(number))
        )
    store.write_now(lambda c: command_log.set_state(c, "c2", "done", 99))
    listed = store.read_now(lambda c: command_log.list_commands(c, "run-a", limit=3))
    assert [entry["id"] for entry in listed] == ["c3", "c2", "c1"]
    assert (listed[1]["state"], listed[1]["finished_ns"]) == ("done", 99)
    unfinished = store.read_now(command_log.unfinished)
    assert {entry["id"] for entry in unfinished} == {"c0", "c1", "c3"}


def receipts_of(store: Store, command_id: str) -> dict[str, Any]:
    stored = store.read_now(lambda c: command_log.get_command(c, command_id))
    assert stored is not None
    receipts: dict[str, Any] = stored["receipts"]
    return receipts


def test_a_final_receipt_stays_unless_it_is_replaced_on_purpose(store: Store) -> None:
    store.write_now(lambda c: command_log.insert_command(c, "run-a", command(1)))
    expired = CommandUpdate(0, "c1", "expired", 5, Receipt("expired", message="no boundary"))
    done = CommandUpdate(0, "c1", "done", 6, Receipt("done", step=3, returned_bytes=7))
    store.write_now(lambda c: command_log.set_receipt(c, "run-a", 1, expired))
    store.write_now(lambda c: command_log.set_receipt(c, "run-a", 1, done))
    assert receipts_of(store, "c1")["1"]["state"] == "expired"
    store.write_now(lambda c: command_log.replace_receipt(c, "run-a", 1, done))
    receipt = receipts_of(store, "c1")["1"]
    assert (receipt["state"], receipt["time_ns"], receipt["step"]) == ("done", 6, 3)
    assert receipt["before"] == {}


def test_an_agent_of_another_run_cannot_answer(store: Store) -> None:
    store.write_now(lambda c: command_log.insert_command(c, "run-a", command(1)))
    done = CommandUpdate(0, "c1", "done", 6, Receipt("done"))
    store.write_now(lambda c: command_log.set_receipt(c, "run-b", 0, done))
    assert receipts_of(store, "c1") == {}


def agreement_of(store: Store, command_id: str) -> dict[str, Any]:
    stored = store.read_now(lambda c: command_log.get_command(c, command_id))
    assert stored is not None
    agreement: dict[str, Any] = stored["agreement"]
    return agreement


def decision(at_step: int, what: str, reason: str = "") -> dict[str, Any]:
    return {"at_step": at_step, "decision": what, "reason": reason, "decided_ns": 7}


def test_a_command_is_decided_once(store: Store) -> None:
    together = command(1) | {"agreement": decision(0, ""), "note": "All at once."}
    store.write_now(lambda c: command_log.insert_command(c, "run-a", together))
    undecided = {"at_step": None, "decision": None, "reason": "", "decided_ns": None}
    assert agreement_of(store, "c1") == undecided
    store.write_now(lambda c: command_log.set_step(c, "c1", 40))
    assert agreement_of(store, "c1") == undecided | {"at_step": 40}

    drop, run = decision(40, "drop", "Rank 1 refused."), decision(40, "run")
    assert store.write_now(lambda c: command_log.decide(c, "c1", drop)) == drop
    assert store.write_now(lambda c: command_log.decide(c, "c1", run)) == drop
    store.write_now(lambda c: command_log.set_step(c, "c1", 50))
    assert agreement_of(store, "c1") == drop
    assert store.write_now(lambda c: command_log.decide(c, "c9", run)) is None


def test_commands_with_large_receipts_are_not_all_listed_at_once(store: Store) -> None:
    result = "x" * (command_log.MAX_ANSWER_BYTES // 3)
    for number in range(5):
        store.write_now(
            partial(command_log.insert_command, run_id="run-a", command=command(number))
        )
        item = CommandUpdate(1, f"c{number}", "running", 1, Receipt("done", result=result))
        store.write_now(partial(command_log.set_receipt, run_id="run-a", rank=0, item=item))
    listed = store.read_now(lambda c: command_log.list_commands(c, "run-a"))
    assert [entry["id"] for entry in listed] == ["c4", "c3"]
    # A server that starts again needs every one of them.
    assert len(store.read_now(command_log.unfinished)) == 5

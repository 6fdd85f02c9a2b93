from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.server_commands import make_command
from tests.support.streams import open_store
from vramscope_server.store import audit, command_log
from vramscope_server.store.audit import AuditFilter
from vramscope_server.store.store import Store


def row(number: int, run: str) -> dict[str, Any]:
    return {
        "time_ns": number, "who": "me", "origin": "api", "address": "127.0.0.1", "run": run,
        "command_id": f"c{number}", "name": "empty_cache", "ranks": [0, 1], "dry_run": True,
        "params": {"a": 1}, "result": "queued",
    }  # fmt: skip


def filled(folder: Path) -> Store:
    store = open_store(folder)
    for number in range(5):
        store.write_now(partial(audit.record, row=row(number, f"run-{number % 2}")))
    return store


def test_rows_come_back_newest_first(tmp_path: Path) -> None:
    store = filled(tmp_path)
    listed = store.read_now(lambda c: audit.list_audit(c, limit=3))
    assert [entry["time_ns"] for entry in listed] == [4, 3, 2]
    assert listed[1] == row(3, "run-1") | {"id": 4}
    store.close()


WANTED = [
    (AuditFilter(runs=("run-0", "other")), [4, 2, 0]),
    (AuditFilter(runs=()), []),
    (AuditFilter(who="me"), [4, 3, 2, 1, 0]),
    (AuditFilter(who="m"), []),
    (AuditFilter(name="empty_cache", before=3), [1, 0]),
    (AuditFilter(name="stats"), []),
    (AuditFilter(since_ns=1, until_ns=3), [2, 1]),
    (AuditFilter(runs=("run-1",), since_ns=2), [3]),
]


@pytest.mark.parametrize(("wanted", "times"), WANTED)
def test_only_what_is_wanted(tmp_path: Path, wanted: AuditFilter, times: list[int]) -> None:
    store = filled(tmp_path)
    listed = store.read_now(lambda c: audit.list_audit(c, wanted=wanted))
    assert [entry["time_ns"] for entry in listed] == times
    store.close()


def test_an_answer_is_not_larger_than_so_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    monkeypatch.setattr(audit, "MAX_ANSWER_BYTES", 40)
    assert len(store.read_now(audit.list_audit)) == 2
    monkeypatch.setattr(audit, "MAX_ANSWER_BYTES", 1)
    assert len(store.read_now(audit.list_audit)) == 1
    store.close()


def test_a_result_is_that_of_the_command_alone(tmp_path: Path) -> None:
    """Whoever asks chooses the id, and must not change what the log says of others."""
    store = open_store(tmp_path)
    command = make_command(id="mine", created_ns=20)
    refused, accepted, muted = (row(time_ns, "r1") for time_ns in (10, 20, 30))
    for each in (refused, accepted, muted):
        each["command_id"] = "mine"
        store.write_now(partial(audit.record, row=each))
    store.write_now(lambda c: command_log.insert_command(c, "r1", command.as_row()))
    store.write_now(lambda c: audit.set_result(c, "mine", "done"))
    results = {each["time_ns"]: each["result"] for each in store.read_now(audit.list_audit)}
    assert results == {10: "queued", 20: "done", 30: "queued"}
    store.close()

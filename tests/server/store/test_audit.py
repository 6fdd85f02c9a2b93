from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.support.streams import open_store
from vramscope_server.store import audit


def row(number: int, run: str) -> dict[str, Any]:
    return {
        "time_ns": number, "who": "me", "origin": "api", "address": "127.0.0.1", "run": run,
        "command_id": f"c{number}", "name": "empty_cache", "ranks": [0, 1], "dry_run": True,
        "params": {"a": 1}, "result": "queued",
    }  # fmt: skip


def test_rows_come_back_newest_first_with_their_results(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in range(5):
        store.write_now(partial(audit.record, row=row(number, f"run-{number % 2}")))
    store.write_now(lambda c: audit.set_result(c, "c3", "done"))
    listed = store.read_now(lambda c: audit.list_audit(c, limit=3))
    assert [entry["time_ns"] for entry in listed] == [4, 3, 2]
    assert listed[1] == row(3, "run-1") | {"result": "done"}
    of_run = store.read_now(lambda c: audit.list_audit(c, run="run-0"))
    assert [entry["time_ns"] for entry in of_run] == [4, 2, 0]
    store.close()

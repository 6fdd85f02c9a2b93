"""What is taken away can be read by a program, and does nothing in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from vramscope_server.api.audit_export import COLUMNS, csv_head, csv_lines, json_lines, utc


def row(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "id": 3, "time_ns": 1_700_000_000_123_456_789, "who": "me", "origin": "api",
        "address": "127.0.0.1", "run": "r1", "run_name": "train", "command_id": "c1",
        "name": "empty_cache", "ranks": [0, 2], "dry_run": True, "params": {"a": 1},
        "result": "done",
    }  # fmt: skip
    return values | changes


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_one_line_a_row() -> None:
    (found,) = read(csv_head() + csv_lines([row()]))
    assert found == {
        "when": "2023-11-14T22:13:20.123Z",
        "who": "me",
        "origin": "api",
        "address": "127.0.0.1",
        "run": "r1",
        "run_name": "train",
        "what": "empty_cache",
        "params": '{"a":1}',
        "ranks": "0 2",
        "dry_run": "yes",
        "result": "done",
        "command_id": "c1",
    }
    assert tuple(found) == COLUMNS
    (whole,) = read(csv_head() + csv_lines([row(ranks="all", dry_run=False)]))
    assert (whole["ranks"], whole["dry_run"]) == ("all", "no")


@pytest.mark.parametrize(
    "text",
    ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "|calc", "%x"],
)
def test_nothing_is_computed(text: str) -> None:
    lines = csv_head() + csv_lines([row(who=text, result=text, run_name=text)])
    (found,) = read(lines)
    assert (found["who"], found["result"], found["run_name"]) == (f"'{text}",) * 3


def test_quotes_commas_and_line_breaks_stay_in_their_cell() -> None:
    text = 'a,"b"\r\nc;=d'
    (found,) = read(csv_head() + csv_lines([row(result=text)]))
    assert found["result"] == text


def test_json_lines() -> None:
    rows = [row(), row(result="two\nlines \u202e")]
    text = json_lines(rows)
    assert [json.loads(line) for line in text.splitlines()] == rows


def test_a_time_that_no_calendar_has() -> None:
    assert utc(2**63 - 1).startswith("2262-")
    assert utc(-(2**80)) == str(-(2**80))

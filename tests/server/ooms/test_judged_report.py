"""What one stored report says, to judges and to a page, whatever is in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.wire_ooms import made_report, wire_oom
from vramscope_server.ooms.judged_report import put_verdict, read_report, whole_report
from vramscope_server.ooms.report_row import stored_row


def stored(identity: str = "o1", **fields: Any) -> tuple[dict[str, Any], bytes]:
    """A row as the store has it, with its JSON."""
    begin, _ = wire_oom(identity, **fields)
    report = made_report(identity, **fields)
    data = json.dumps(report).encode()
    return {**stored_row(begin, report, 1), "raw_bytes": len(data)}, data


def test_its_verdict_is_put_into_the_row() -> None:
    row, data = stored()
    report = put_verdict(row, data)
    assert report is not None
    assert report.id == "o1"
    assert row["shown"]["severity"] == "critical"
    assert row["shown"]["summary"] == whole_report(row, data, [])["finding"]["summary"]


def test_what_was_learnt_later_is_part_of_it() -> None:
    row, data = stored()
    row |= {"message": "CUDA out of memory.", "recovered_step": 8}
    report, whole = read_report(row, data), whole_report(row, data, [])
    assert report is not None
    assert (report.message, report.recovered_step) == ("CUDA out of memory.", 8)
    assert (whole["report"]["message"], whole["report"]["recovered_step"]) == (
        "CUDA out of memory.",
        8,
    )


def test_a_rank_that_was_only_asked_did_not_run_out() -> None:
    row, data = stored(source="asked", linked_to="o0")
    assert put_verdict(row, data) is None
    assert row["shown"]["summary"] is None
    assert whole_report(row, data, [])["finding"] is None


@pytest.mark.parametrize("data", [b"", b'{"a":' * 99 + b"1" + b"}" * 99, b"{"])
def test_what_is_no_report_is_not_judged(data: bytes) -> None:
    row, _ = stored()
    assert read_report(row, data) is None


def test_reports_of_the_same_moment_are_named() -> None:
    row, data = stored()
    same, _ = stored("o2", rank=1, time_ns=row["time_ns"] + 10**9)
    linked, _ = stored("o3", rank=2, source="asked", linked_to="o1")
    hours_later, _ = stored("o4", rank=3, time_ns=row["time_ns"] + 3600 * 10**9)
    again, _ = stored("o5", time_ns=row["time_ns"] + 10**9)
    siblings = whole_report(row, data, [row, same, linked, hours_later, again])["siblings"]
    assert [each["id"] for each in siblings] == ["o2", "o3"]


def test_what_is_shown_has_the_types_that_a_page_expects() -> None:
    odd: dict[str, Any] = {
        "threads": [7, {"name": 5}],
        "by_stack": 5,
        "counters": [],
        "notes": {},
        "more": 1 << 70,
    }
    report = whole_report(*stored(**odd), [])["report"]
    assert {name: report[name] for name in odd} == {
        "threads": [{"name": "", "frames": []}],
        "by_stack": [],
        "counters": {},
        "notes": [],
        "more": 1 << 70,
    }
    assert "by_size" not in report, "it does not say so"

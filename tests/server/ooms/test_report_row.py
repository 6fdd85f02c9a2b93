from __future__ import annotations

from typing import Any

import pytest

from tests.support.wire_ooms import made_report, wire_oom
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.ooms.report_row import number, shown_row, stored_row, text, with_verdict


def row(**fields: Any) -> dict[str, Any]:
    begin, data = wire_oom(**fields)
    return {**stored_row(begin, made_report(**fields), 5), "raw_bytes": len(data)}


def test_the_list_shows_what_was_asked_and_when() -> None:
    shown = shown_row(row())
    assert (shown["id"], shown["rank"], shown["step"], shown["part"]) == ("o1", 0, 7, "forward")
    assert (shown["segment_bytes"], shown["request_bytes"]) == (20 << 20, None)
    assert (shown["state"], shown["linked_to"], shown["recovered_step"]) == ("complete", None, None)
    assert (shown["is_fatal"], shown["skipped"], shown["summary"]) == (False, 0, None)


def test_what_is_not_as_it_should_be_is_not_known() -> None:
    shown = shown_row(row(phase=["eval"], segment_bytes="many", skipped=-1, message="a\0b"))
    assert (shown["phase"], shown["segment_bytes"], shown["skipped"]) == ("", None, 0)
    assert shown["message"] == "ab"


@pytest.mark.parametrize("value", [True, -1, 1 << 63, 1.5, None, "7"])
def test_only_numbers_that_a_database_holds_are_numbers(value: object) -> None:
    assert number(value) is None


def test_text_is_cut_and_made_sayable() -> None:
    assert text("x" * 10, 4) == "xxxx"
    assert text("\udce9", 4) == "?"
    assert text(7, 4) == ""


def test_a_verdict_adds_its_words() -> None:
    finding = Finding("oom", "critical", "It was too much.")
    assert with_verdict({"a": 1}, finding) == {
        "a": 1,
        "summary": "It was too much.",
        "severity": "critical",
    }
    assert with_verdict({"a": 1}, None) == {"a": 1}

"""Reports are read whatever is missing or wrong in them, and nothing else is."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.support.made_ooms import asking, made_oom, step_rows, tensor
from vramscope_analysis.diagnosis.oom import diagnose_oom
from vramscope_analysis.evidence import oom_reading
from vramscope_analysis.evidence.oom_plain import plain_report
from vramscope_analysis.evidence.oom_reading import (
    OomReportError,
    looks_like_oom_report,
    oom_report_of,
    read_oom_report,
)


def plain() -> dict[str, Any]:
    return plain_report(
        made_oom(
            step_rows([200.0] * 5),
            threads=(asking(("/a/train.py", 30, "step")),),
            largest=(tensor("float32[8, 8]", 5, "local"),),
            processes=({"pid": 5, "command": "x", "bytes": 7, "own": False},),
            by_category={"category.parameters_bytes": 7},
        )
    )


def test_a_report_is_read_as_it_was_written() -> None:
    assert plain_report(read_oom_report(json.dumps(plain()))) == plain()


def test_what_a_later_release_adds_is_nothing_to_us() -> None:
    value = {**plain(), "format": "x", "new": {"a": [1]}, "source": "satellite"}
    assert oom_report_of(value).source == "satellite"


def test_without_an_id_it_gets_the_one_that_the_store_has() -> None:
    assert oom_report_of({}, id="stored").id == "stored"
    assert oom_report_of({"id": "own"}, id="stored").id == "own"


def test_an_empty_object_is_a_report_of_which_nothing_is_known() -> None:
    report = oom_report_of({})
    assert (report.request_bytes, report.step, report.settings) == (None, None, None)
    assert diagnose_oom(report).severity == "critical"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x80\x04K\x01.", "expected a report in JSON"),
        (b"[1, 2]", "got other JSON"),
        (b'{"time_ns": 5}', "got other JSON"),
        (b"{" * 100_000, "expected a report in JSON"),
        (b'{"a":' + b"[" * 100_000, "expected a report in JSON"),
        (b'{"time_ns": ' + b"9" * 5000 + b"}", "expected a report in JSON"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(data: bytes, words: str) -> None:
    with pytest.raises(OomReportError, match=words) as caught:
        read_oom_report(data)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_too_large_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oom_reading, "MAX_FILE_BYTES", 100)
    with pytest.raises(OomReportError, match="expected at most 100 bytes"):
        read_oom_report(json.dumps(plain()))


def test_a_report_is_told_from_other_json() -> None:
    assert looks_like_oom_report(plain())
    assert not looks_like_oom_report({"time_ns": 5, "message": ""})
    assert not looks_like_oom_report([plain()])


def test_nonsense_anywhere_is_read_and_judged() -> None:
    """Each field replaced by values of every other kind: reading never raises, nor does judging."""
    odd: list[Any] = [None, 5, -(1 << 70), 0.5, "x", True, [], [[]], {}, [{}], [{"bytes": "x"}]]
    odd += [[{"frames": [{"file": "a"}], "held_by": 5, "holder": 7, "pool": 3, "pinned_by": [5]}]]
    odd += [{"time_ns": [1, 2], "number": ["a", None], "columns": {"phase": [1, "x"]}}]
    dice = random.Random(6)
    for _ in range(300):
        value = plain()
        for name in dice.sample(sorted(value), 6):
            value[name] = dice.choice(odd)
        finding = diagnose_oom(oom_report_of(value))
        assert len(finding.summary) <= 110
        json.dumps(finding.evidence)

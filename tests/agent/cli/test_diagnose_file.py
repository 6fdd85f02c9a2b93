"""Files are told apart by what is in them, and judged here."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.made_ooms import asking, made_oom, step_rows
from vramscope.cli import diagnose_file
from vramscope.cli.diagnose_file import findings_of_file
from vramscope.cli.problem import Problem
from vramscope.cli.progress_bar import ProgressBar
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.evidence.oom_plain import plain_report

TRACES = Path(__file__).parents[2] / "data" / "traces"
REPORT = plain_report(
    made_oom(step_rows([500] * 30), threads=(asking(("/a/train.py", 30, "step")),))
)


def found(path: Path | str, device: int | None = None) -> tuple[str, list[dict[str, Any]]]:
    return findings_of_file(str(path), device, ProgressBar())


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "oom-1-0.json"
    path.write_text(json.dumps(REPORT))
    return path


def test_a_report_is_one_finding(report: Path) -> None:
    kind, (finding,) = found(report)
    assert (kind, finding["kind"], finding["severity"]) == (
        "report of an out-of-memory",
        "oom",
        "critical",
    )
    assert finding["culprits"][0]["line"] == 30
    assert json.loads(json.dumps(finding)) == finding


def test_a_report_as_the_server_gives_it_out_is_the_same(tmp_path: Path, report: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"id": "x", "report": REPORT, "finding": None}))
    assert found(path) == found(report)


def test_a_snapshot_is_replayed_and_every_refusal_is_judged() -> None:
    kind, findings = found(TRACES / "oom__default.pickle.gz")
    assert kind == "snapshot"
    oom = next(finding for finding in findings if finding["kind"] == "oom")
    assert oom["evidence"]["cause"] == "growing_demand"
    assert oom["evidence"]["tried"]
    assert any("expandable_segments:True" in remedy["fix"] for remedy in oom["remedies"])


def test_what_is_most_urgent_comes_first() -> None:
    _, findings = found(TRACES / "oom_retry__default.pickle.gz")
    order = [("critical", "warning", "info").index(each["severity"]) for each in findings]
    assert order == sorted(order)
    assert "oom" in [each["kind"] for each in findings]


def test_a_file_on_standard_input_is_as_good(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(report.read_bytes()))

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr("sys.stdin", Stdin())
    assert found("-") == found(report)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1}', "expected a report of running out of memory, got other JSON"),
        (b"{broken", "expected a report in JSON"),
        (b"", "a.bin: "),
        (b"\x80\x04cos\nsystem\n.", "a.bin: "),
        (b"plain text", "a.bin: "),
    ],
)
def test_what_is_neither_is_refused_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    with pytest.raises(Problem, match=words) as caught:
        found(path)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="expected a file, got a directory"):
        found(tmp_path)
    with pytest.raises(Problem, match="No such file"):
        found(tmp_path / "none.json")


def test_a_device_that_the_snapshot_does_not_have_is_refused() -> None:
    with pytest.raises(Problem, match=r"expected a device of the snapshot \(0\), got 3"):
        found(TRACES / "graphs__default.pickle.gz", 3)


def test_what_is_not_known_is_null() -> None:
    finding = Finding("leak", "info", "It grows.", evidence={"a": float("nan"), "b": float("inf")})
    (plain,) = diagnose_file._sorted([finding])
    assert plain["evidence"] == {"a": None, "b": None}

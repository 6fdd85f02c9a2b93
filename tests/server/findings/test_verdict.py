"""One line about a run."""

from __future__ import annotations

from typing import Any

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings.record import FindingRecord, opened
from vramscope_server.findings.verdict import verdict


def record(time_ns: int = 1, **values: Any) -> FindingRecord:
    finding = Finding(**{"kind": "leak", "severity": "info", "summary": "It grows."} | values)
    return opened("run-a", finding, 0, time_ns)


def test_without_a_finding_nothing_is_said() -> None:
    nothing = {"critical": 0, "warning": 0, "info": 0}
    assert verdict([], 5) == {"finding": None, "findings_open": nothing}


def test_the_most_urgent_then_the_newest_comes_first() -> None:
    forecast = {"early_s": 60}
    first = record(2, severity="critical", evidence={"forecast": forecast})
    others = [
        record(9),
        record(1, severity="critical", subject="older"),
        record(8, severity="critical", stage="suspected"),
        record(7, severity="warning"),
    ]
    said = verdict([*others, first], 10)
    assert said["finding"] == {
        "id": first.id,
        "kind": "leak",
        "severity": "critical",
        "stage": "confirmed",
        "summary": "It grows.",
        "state": "open",
        "rank": 0,
        "forecast": forecast,
    }
    assert said["findings_open"] == {"critical": 3, "warning": 1, "info": 1}


def test_what_is_muted_is_not_heard_of_until_that_is_over() -> None:
    muted = record(severity="critical")
    muted.muted = {"until": "day", "until_ns": 50}
    assert verdict([muted], 50)["finding"] is None
    assert verdict([muted], 50)["findings_open"]["critical"] == 0
    assert verdict([muted], 51)["finding"]["id"] == muted.id

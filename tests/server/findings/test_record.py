"""A finding as it is stored and told."""

from __future__ import annotations

from dataclasses import replace

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_server.findings.record import opened

FINDING = Finding(
    "agent_degraded",
    "info",
    "Sampling at 4.0 instead of 10 Hz.",
    {"rate_hz": 4.0},
    remedies=(Remedy("raise cost_budget", "the rate is lowered"),),
)


def test_what_the_api_has() -> None:
    payload = opened("run-a", 3, FINDING, 17).payload()
    assert payload == {
        "id": payload["id"],
        "run": "run-a",
        "rank": 3,
        "ranks": [3],
        "kind": "agent_degraded",
        "severity": "info",
        "confidence": 1.0,
        "summary": "Sampling at 4.0 instead of 10 Hz.",
        "evidence": {"rate_hz": 4.0},
        "culprits": [],
        "remedies": [
            {
                "action": "raise cost_budget",
                "why": "the rate is lowered",
                "predicted_bytes": None,
                "cost": "",
                "fix": "",
                "command": "",
            }
        ],
        "opened_ns": 17,
        "resolved_ns": None,
    }


def test_the_id_is_that_of_one_finding_and_stays() -> None:
    record = opened("run-a", 3, FINDING, 17)
    assert opened("run-a", 3, FINDING, 17).id == record.id
    others = {opened("run-a", 4, FINDING, 17).id, opened("run-a", 3, FINDING, 18).id}
    others.add(opened("run-b", 3, FINDING, 17).id)
    assert len(others | {record.id}) == 4
    assert record.take(replace(FINDING, summary="Sampling at 1.0 instead of 10 Hz."))
    assert not record.take(replace(FINDING, summary="Sampling at 1.0 instead of 10 Hz."))
    assert record.summary == "Sampling at 1.0 instead of 10 Hz."


def test_a_finding_of_the_whole_run_has_no_rank() -> None:
    assert opened("run-a", None, FINDING, 17).payload()["ranks"] == []

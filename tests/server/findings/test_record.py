"""A finding as it is stored and told, and what became of it."""

from __future__ import annotations

import math
from dataclasses import replace

from vramscope_analysis.diagnosis.finding import Culprit, Finding, Remedy
from vramscope_server.findings.record import MAX_HISTORY, FindingRecord, opened

FINDING = Finding(
    "leak",
    "info",
    "Memory grew 1.0 MiB per step for 60 steps.",
    {"slope_bytes_per_step": 4.0},
    0.7,
    (Culprit("/job/train.py", 56, "step", 1 << 20, tensors=("float32[512]",), held_by=("kept",)),),
    (Remedy("clear kept", "it frees what it keeps"),),
    "Since step 9.",
    stage="suspected",
    ranks=(3,),
    since_step=9,
)
SECOND_NS = 10**9


def record() -> FindingRecord:
    return opened("run-a", FINDING, 3, 17)


def whats(one: FindingRecord) -> list[str]:
    return [entry["what"] for entry in one.data["history"]]


def test_what_the_api_has() -> None:
    payload = record().payload(100)
    assert payload == {
        "id": payload["id"],
        "run": "run-a",
        "rank": 3,
        "ranks": [3],
        "kind": "leak",
        "severity": "info",
        "stage": "suspected",
        "subject": "",
        "confidence": 0.7,
        "summary": "Memory grew 1.0 MiB per step for 60 steps.",
        "detail": "Since step 9.",
        "evidence": {"slope_bytes_per_step": 4.0},
        "culprits": [
            {
                "file": "/job/train.py",
                "line": 56,
                "function": "step",
                "bytes": 1 << 20,
                "bytes_per_step": None,
                "tensors": ["float32[512]"],
                "held_by": ["kept"],
            }
        ],
        "remedies": [
            {
                "action": "clear kept",
                "why": "it frees what it keeps",
                "predicted_bytes": None,
                "cost": "",
                "fix": "",
                "command": "",
            }
        ],
        "since_step": 9,
        "life": 0,
        "step_offset": 0,
        "state": "open",
        "opened_ns": 17,
        "confirmed_ns": None,
        "resolved_ns": None,
        "updated_ns": 17,
        "muted": None,
        "history": [
            {"time_ns": 17, "what": "opened", "severity": "info", "summary": FINDING.summary}
        ],
    }


def test_the_id_is_that_of_one_finding_and_stays() -> None:
    first = record()
    assert opened("run-a", FINDING, 3, 17).id == first.id
    others = {opened("run-a", FINDING, 4, 17).id, opened("run-a", FINDING, 3, 18).id}
    others |= {opened("run-b", FINDING, 3, 17).id}
    others |= {opened("run-a", replace(FINDING, subject="train.py:56"), 3, 17).id}
    assert len(others | {first.id}) == 5


def test_it_is_confirmed_at_a_line_and_says_when() -> None:
    one = record()
    told = replace(FINDING, stage="confirmed", subject="train.py:56", severity="warning")
    assert one.take(told, 20)
    assert not one.take(told, 21)
    assert (one.stage, one.subject, one.confirmed_ns) == ("confirmed", "train.py:56", 20)
    assert whats(one) == ["opened", "confirmed"]
    assert one.take(replace(told, severity="critical"), 30)
    assert whats(one)[-1] == "severity"


def test_it_ends_holds_again_and_says_which_state_it_is_in() -> None:
    one = record()
    one.resolve(10, is_final=False)
    assert (one.state, one.resolved_ns) == ("resolved", 17)  # not before it was opened
    assert one.may_reopen(17 + 600 * SECOND_NS)
    assert not one.may_reopen(18 + 600 * SECOND_NS)
    one.reopen(40)
    assert (one.state, one.resolved_ns) == ("open", None)
    one.resolve(50, is_final=True)
    assert one.state == "final"
    assert whats(one) == ["opened", "resolved", "reopened", "ended"]


def test_the_history_is_bounded_and_keeps_its_beginning() -> None:
    one = record()
    for number in range(100):
        one.note(100 + number, "severity")
    history = one.data["history"]
    assert len(history) == MAX_HISTORY
    assert (history[0]["what"], history[-1]["time_ns"]) == ("opened", 199)


def test_a_later_version_has_a_higher_number_whatever_the_clock_says() -> None:
    one = record()
    one.touch(1000)
    one.touch(500)
    assert one.payload(0)["updated_ns"] == 1001


def test_a_mute_runs_out() -> None:
    one = record()
    one.muted = {"until": "day", "until_ns": 50}
    assert one.payload(50)["muted"] is not None
    assert one.payload(51)["muted"] is None
    one.muted = {"until": "run", "until_ns": None}
    assert one.payload(10**20)["muted"] is not None


def test_what_no_database_holds_is_left_out() -> None:
    odd = replace(FINDING, summary="a\0b" * 500, evidence={"x": math.nan, "y": 1 << 80})
    one = opened("run-a", odd, 3, 17)
    assert "\0" not in one.summary
    assert len(one.summary) <= 400
    assert one.data["evidence"] == {"x": None, "y": None}


def test_a_proof_that_comes_late_is_news_though_the_sentence_stays() -> None:
    one = record()
    assert not one.take(replace(FINDING, evidence={"slope_bytes_per_step": 5.0}), 18)
    proven = replace(FINDING, remedies=(Remedy("set it", "Replayed."),))
    assert one.take(proven, 19)
    assert not one.take(proven, 20)
    assert one.take(replace(proven, detail="They lie beside blocks that stay."), 21)

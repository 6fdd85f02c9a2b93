"""What counts as a mistake in what was told of a case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.cases.case import FOLDER, Case, Expected, mistakes
from tests.cases.table import CASES

CASE = Case(
    "C08",
    expects=Expected(("leak",), holder=r"results.*acc", remedy=r"clear"),
    never=("retention",),
    never_suspected=("cycle_growth",),
    never_says=r"bounded",
    never_advises=r"empty_cache",
)
(LINE,) = CASE.lines("culprit")


def told(**changes: Any) -> dict[str, Any]:
    culprit = {
        "file": "/elsewhere/C08.py",
        "line": LINE,
        "function": "evaluate",
        "tensors": [],
        "held_by": ["list of 40", "['acc']", "T.results"],
    }
    remedy = {"action": "Clear it", "why": "", "cost": "", "fix": ""}
    return {
        "kind": "leak",
        "stage": "confirmed",
        "severity": "warning",
        "summary": "Leaking 32 MiB every 50 steps.",
        "detail": "",
        "culprits": [culprit],
        "remedies": [remedy],
        **changes,
    }


def test_a_verdict_that_has_everything_is_right() -> None:
    assert mistakes(CASE, [told(stage="suspected", severity="info", culprits=[]), told()]) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "host_growth"},
        {"stage": "suspected", "severity": "info"},
        {"culprits": [{**told()["culprits"][0], "line": LINE + 1}]},
        {"culprits": [{**told()["culprits"][0], "file": "/elsewhere/C09.py"}]},
        {"culprits": [{**told()["culprits"][0], "held_by": ["list of 40"]}]},
        {"remedies": []},
    ],
)
def test_what_is_missing_is_a_mistake(changes: dict[str, Any]) -> None:
    assert len(mistakes(CASE, [told(**changes)])) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "retention"},
        {"kind": "cycle_growth", "stage": "suspected", "severity": "info"},
        {"detail": "It is bounded."},
        {"remedies": [{"action": "torch.cuda.empty_cache()", "why": "", "cost": "", "fix": ""}]},
    ],
)
def test_what_must_not_be_said_is_one_at_any_time(changes: dict[str, Any]) -> None:
    assert len(mistakes(CASE, [told(**changes), told()])) == 1


def test_a_suspicion_is_no_verdict_and_info_is_quiet() -> None:
    case = replace(CASE, expects=None, quiet=True)
    assert mistakes(case, [told(kind="retention", stage="suspected", severity="info")]) == []
    assert len(mistakes(case, [told()])) == 1


def test_a_line_that_is_named_in_words_counts() -> None:
    words = told(culprits=[], detail=f"T.results['acc'], C08.py:{LINE}")
    assert mistakes(CASE, [words]) == []


def test_every_case_has_its_script_and_every_line_its_mark() -> None:
    for case in CASES:
        assert case.path.exists()
        if case.expects is not None and case.expects.culprit:
            assert case.lines(case.expects.culprit), case.name
    used = {case.path for case in CASES} | {FOLDER / "C44.py", FOLDER / "C47.py"}
    assert set(FOLDER.glob("C*.py")) == used
    assert len({case.name for case in CASES}) == len(CASES)

"""``vramscope diagnose`` says what is wrong, and its exit code is a gate."""

from __future__ import annotations

import importlib.util
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agent.cli.test_diagnose_file import REPORT
from tests.agent.cli.test_diagnose_text import FINDING, RUN
from tests.support.fake_api import FakeApi
from vramscope.cli import diagnose, main

MUTED = {**FINDING, "muted": {"until": "run", "reason": "known"}}
INFO = {**FINDING, "severity": "info", "summary": "Worth knowing.", "opened_ns": 7}
ASKED = "GET /api/v1/runs/train/findings?state=verdict&limit=1000"


def api(*findings: dict[str, Any]) -> FakeApi:
    answer = {"findings": list(findings), "judged_ns": 5}
    return FakeApi({"GET /api/v1/runs/train": [(200, RUN)], ASKED: [(200, answer)]})


@pytest.mark.parametrize(
    ("findings", "options", "code"),
    [
        ([], [], 0),
        ([FINDING], [], 1),
        ([INFO], [], 0),
        ([INFO], ["--fail-on", "info"], 1),
        ([{**INFO, "severity": "warning"}], ["--fail-on", "warning"], 1),
        ([{**INFO, "severity": "warning"}], [], 0),
        ([MUTED], ["--fail-on", "info"], 0),
        ([{**INFO, "severity": "of a later release"}], [], 1),
    ],
)
def test_the_exit_code_follows_the_severity(
    findings: list[dict[str, Any]],
    options: list[str],
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with api(*findings) as fake:
        assert main(["diagnose", "train", "--url", fake.url, *options]) == code
    assert capsys.readouterr().err == ""


def test_a_run_is_one_object_with_what_is_most_urgent_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with api(INFO, MUTED, FINDING) as fake:
        assert main(["diagnose", "train", "--json", "--url", fake.url]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["source"], answer["run"]["id"]) == ("train", "abc")
    assert [each["severity"] for each in answer["findings"]] == ["critical", "info"]


def test_a_run_that_nobody_knows_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = {"error": {"code": "not_found", "message": "no run 'other'"}}
    with FakeApi({"GET /api/v1/runs/other": [(404, refusal)]}) as fake:
        assert main(["diagnose", "other", "--url", fake.url]) == 2
    assert "no run 'other'" in capsys.readouterr().err


def test_a_file_is_judged_without_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "oom-1-0.json"
    path.write_text(json.dumps(REPORT))
    assert main(["diagnose", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"{path} · report of an out-of-memory · 1 critical"[:70])
    assert (err, "Out of memory at step 30" in out) == ("", True)


@pytest.mark.parametrize("name", ["none.json", "./none", "a.pickle.gz"])
def test_a_file_that_is_not_there_is_no_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", name]) == 2
    assert "expected a run or a file, got neither" in capsys.readouterr().err


def test_without_numpy_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "oom.json"
    path.write_text(json.dumps(REPORT))

    def find_nothing(name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    assert main(["diagnose", str(path)]) == 2
    assert "judging a file needs numpy" in capsys.readouterr().err


def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "train", "--fail-on", "doom"]) == 2
    assert main(["diagnose"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_a_folder_with_the_name_of_a_run_is_not_in_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train").mkdir()
    monkeypatch.chdir(tmp_path)
    with api() as fake:
        assert main(["diagnose", "train", "--url", fake.url]) == 0
    assert "nothing found" in capsys.readouterr().out
    assert main(["diagnose", "./train"]) == 2
    assert "got a directory" in capsys.readouterr().err


def test_the_verdict_on_a_run_that_ended_just_now_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(diagnose, "_PAUSE_S", 0.0)
    ended_ns = time.time_ns()
    run = {**RUN, "state": "ended", "ended_ns": ended_ns}
    early: list[tuple[int, Any]] = [
        (200, {"findings": [], "judged_ns": judged}) for judged in (None, ended_ns - 1)
    ]
    judged = (200, {"findings": [FINDING], "judged_ns": ended_ns + 1})
    with FakeApi({"GET /api/v1/runs/train": [(200, run)], ASKED: [*early, judged]}) as fake:
        assert main(["diagnose", "train", "--url", fake.url]) == 1
    assert "CRITICAL" in capsys.readouterr().out


def test_an_old_run_that_nobody_judges_any_more_is_not_waited_for() -> None:
    run = {**RUN, "state": "ended", "ended_ns": 5}
    answers = [(200, {"findings": [], "judged_ns": None}), (500, "asked twice")]
    with FakeApi({"GET /api/v1/runs/train": [(200, run)], ASKED: answers}) as fake:
        assert main(["diagnose", "train", "--url", fake.url]) == 0

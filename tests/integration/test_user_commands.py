"""Commands that a job declares: on a real server, from a shell, with whatever they do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    foreign_lines,
    start,
    wait_until,
    watched_command,
)
from tests.support.same_job import write_script
from tests.support.server_process import ServerProcess
from vramscope.cli import main

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180)]
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/commanded.py"
RUN = "commanded"
SMALL = """
import time
import vramscope

@vramscope.command
def save(tag: str) -> str:
    return tag

@vramscope.command("look", right="view", place="agent thread")
def look_at_calls() -> list[str]:
    return []

while True:
    vramscope.step()
    time.sleep(0.01)
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def job_of(api: Api, script: Path, *options: str) -> subprocess.Popen[str]:
    command = watched_command(script, url=api.url, token=api.token, run=RUN, options=options)
    return start(command)


def receipt(command: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = command["receipts"]["0"]
    return found


def test_a_function_of_the_job_is_called_and_its_fate_is_told(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    job = job_of(api, JOB, "--emulate")
    try:
        run = api.wait_for_run(
            RUN,
            lambda run: "user.late" in run["ranks"][0]["commands"],
            "the command that is declared late",
            timeout_s=60,
        )
        (rank,) = run["ranks"]
        forms = {each["name"]: each for each in rank["user_commands"]}
        saved = api.command(RUN, "user.save", params={"tag": "5", "quick": True})
        failed = api.command(RUN, "user.fail")
        kept = api.command(RUN, "user.leave")
        late = api.command(RUN, "user.late")
        words = ["command", RUN, "user.save", "--url", api.url, "--token", api.token]
        from_shell = main([*words, "--param", "tag=7", "--param", "keep=2"])
        told = capsys.readouterr().out
        refused = main([*words, "--param", "tag=7", "--param", "keep=20"])
        said = capsys.readouterr().err
        looked = api.command(RUN, "user.look")
        before = api.wait_for_run(RUN, bool, "the run")["step"]
        api.wait_for_run(RUN, lambda run: run["step"] > before, "training that goes on")
    finally:
        job.terminate()
        _, _, errors = finish(job)
    assert forms["user.save"]["summary"] == "Save a checkpoint."
    assert [each["kind"] for each in forms["user.save"]["params"]] == [
        "str",
        "int",
        "float",
        "bool",
        "choice",
    ]
    assert receipt(saved)["state"] == "done"
    assert receipt(saved)["result"] == {
        "tag": "5",
        "keep": 3,
        "share": 0.5,
        "quick": True,
        "kind": "whole",
    }
    assert receipt(saved)["step"] > 0
    assert (receipt(failed)["state"], receipt(failed)["message"]) == (
        "failed",
        "ValueError: not today",
    )
    assert receipt(kept)["message"] == "user.leave raised SystemExit: 3; it was kept"
    assert receipt(late)["result"] == 7
    assert from_shell == 0
    assert '"tag": "7"' in told
    assert '"keep": 2' in told
    assert refused == 2
    assert "parameters of user.save: keep: expected at most 9, got '20'" in said
    assert receipt(looked)["result"] == ["5", "7"]
    assert foreign_lines(errors) == []


def test_what_the_job_does_not_allow_is_refused_with_the_way_to_allow_it(
    api: Api, tmp_path: Path
) -> None:
    job = job_of(api, write_script(tmp_path, SMALL), "--allow", "observe")
    try:
        run = wait_until(
            lambda: api.wait_for_run(RUN, lambda run: (run["step"] or 0) > 0, "a step", 60),
            lambda run: bool(run["ranks"]),
            "its rank",
        )
        command = api.command(RUN, "user.look")
        refused = api.command(RUN, "user.save", params={"tag": "x"})
    finally:
        job.terminate()
        finish(job)
    assert "user.look" in run["ranks"][0]["commands"]
    assert "user.save" not in run["ranks"][0]["commands"]
    assert command["state"] == "done"
    assert refused["state"] == "refused"
    assert "VRAMSCOPE_ALLOW=control at its start permits" in receipt(refused)["message"]


def test_an_allow_list_names_commands_of_the_job(api: Api, tmp_path: Path) -> None:
    job = job_of(api, write_script(tmp_path, SMALL), "--allow", "user.save,stats")
    try:
        run = api.wait_for_run(RUN, lambda run: (run["step"] or 0) > 0, "a step", 60)
    finally:
        job.terminate()
        finish(job)
    assert sorted(run["ranks"][0]["commands"]) == ["stats", "user.save"]

"""The line of a leak is known soon: of 1 MiB a step within 100 steps, of 64 KiB within 500."""

from __future__ import annotations

import subprocess
import urllib.error
import uuid
from typing import Any

import pytest

from tests.cases.case import FOLDER, Case, named_lines
from tests.cases.steady_leak import ONSET
from tests.support.job_process import Api, start, wait_until, watched_command

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180)]

CASE = Case("steady_leak", "steady_leak.py")
MORE_STEPS = 200
"""The job goes on for so long after its bound: what comes too late shows how late."""


@pytest.mark.parametrize(
    ("kib", "step_ms", "within"),
    [(1024, 80, 100), (1024, 10, 100), (64, 20, 500)],
    ids=["1 MiB", "1 MiB, short steps", "64 KiB"],
)
def test_the_line_of_a_leak_is_known_within_its_bound(
    kib: int, step_ms: int, within: int, api: Api
) -> None:
    steps = ONSET + within + MORE_STEPS
    name = f"steady-{uuid.uuid4().hex[:8]}"
    arguments = [str(number) for number in (kib, step_ms, steps)]
    command = watched_command(
        CASE.path, *arguments, url=api.url, token=api.token, run=name, options=["--emulate"]
    )
    job = start(command, OMP_NUM_THREADS="1")
    try:
        found = wait_until(
            lambda: confirmed(api, name, job),
            lambda leak: leak is not None,
            "its line",
            60 + steps * step_ms / 1e3,
        )
        assert found is not None
        told_ns = found["confirmed_ns"] or found["opened_ns"]
        told_at = wait_until(
            lambda: first_step_after(api, name, told_ns), lambda step: step > 0, "a later step"
        )
    finally:
        job.kill()
        job.communicate()
    assert named_lines(CASE, found) == CASE.lines("culprit")
    assert ONSET < told_at <= ONSET + within


def confirmed(api: Api, name: str, job: subprocess.Popen[str]) -> dict[str, Any] | None:
    """The leak once it is confirmed; until then the job has to go on."""
    has_ended = job.poll() is not None
    findings: list[dict[str, Any]] = []
    try:
        findings = api.get(f"/api/v1/runs/{name}/findings")["findings"]
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
    leaks = [each for each in findings if each["kind"] == "leak" and each["stage"] == "confirmed"]
    assert leaks or not has_ended, f"the job has ended, and all that was told: {findings}"
    return leaks[0] if leaks else None


def first_step_after(api: Api, name: str, time_ns: int) -> int:
    """The step that was being done then; 0 while it is not known."""
    rows = api.get(f"/api/v1/runs/{name}/steps?rank=0&start=0&end=100000")
    after = (
        step
        for step, ended_ns in zip(rows["step"], rows["time_ns"], strict=True)
        if ended_ns > time_ns
    )
    return next(after, 0)


def test_its_line_is_marked() -> None:
    assert CASE.path == FOLDER / "steady_leak.py"
    assert len(CASE.lines("culprit")) == 1

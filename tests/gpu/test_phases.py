"""On a real GPU: phases are recognised beside compiled and captured code, which stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    foreign_lines,
    plain_command,
    start,
    watched_command,
)
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/gpu_phases.py"
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def test_evaluation_and_checkpoints_are_seen_and_the_losses_are_the_same(tmp_path: Path) -> None:
    plain = finish(start(plain_command(JOB), **DETERMINISTIC))
    with ServerProcess(tmp_path) as server:
        command = watched_command(JOB, url=server.url, token=server.token, run="phases")
        code, output, errors = finish(start(command, **DETERMINISTIC))
        assert (code, output, foreign_lines(errors)) == (plain[0], plain[1], plain[2].splitlines())
        assert output.count("loss") == 20
        api = Api(server.url, server.token)
        run = api.wait_for_run("phases", lambda run: run["state"] == "ended", "to end")
        events = api.get(f"/api/v1/runs/{run['id']}/events?kind=phase")["events"]
        steps = api.get(f"/api/v1/runs/{run['id']}/steps?rank=0")
    told = [event["data"] for event in events if event["data"]["end_ns"] is not None]
    for phase in ("eval", "checkpoint"):
        ends = [data["end_step"] for data in told if data["phase"] == phase]
        assert ends == [10, 20], phase
    assert len(steps["step"]) == 20
    assert all(wait_us > 0 for wait_us in steps["columns"]["step.data_wait_us"])

"""``kill -9`` of the server in mid-run: the job goes on, and every row is stored exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    foreign_lines,
    start,
    watched_command,
)
from tests.support.server_process import ServerProcess

JOB = REPOSITORY / "tests/support/jobs/cpu_training.py"

pytestmark = pytest.mark.torch


def test_a_killed_and_restarted_server_has_every_row_exactly_once(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        job = start(
            watched_command(
                JOB,
                "--until-terminated",
                "--pause-s=0.005",
                url=server.url,
                token=server.token,
                run="killed",
                options=["--emulate", "--capacity", "1GiB"],
            ),
            VRAMSCOPE_RATE_HZ="50",
        )
        api = Api(server.url, server.token)
        try:
            for _ in range(2):
                wait_for_more_samples(api)
                server.kill()
                server.restart()
            wait_for_more_samples(api)
            job.terminate()
            code, output, errors = finish(job)
        finally:
            job.kill()
        assert (code, output, foreign_lines(errors)) == (0, "", ["done"])
        run = api.wait_for_run("killed", lambda run: run["state"] == "ended", "to end")
        rank = run["ranks"][0]
        assert rank["samples_lost"] == 0

        stored = api.get(f"/api/v1/runs/{run['id']}/steps?rank=0&fields=reserved_bytes.all.current")
        assert stored["step"] == list(range(1, rank["step"] + 1))
        raw = api.get(
            f"/api/v1/runs/{run['id']}/series?rank=0&fields=reserved_bytes.all.current&points=10000"
        )
        assert raw["resolution_ms"] == 0
        assert len(raw["time_ns"]) == rank["samples_received"]
        assert raw["time_ns"] == sorted(set(raw["time_ns"]))


def wait_for_more_samples(api: Api) -> None:
    """Wait until the run exists and has 100 samples more than now."""
    seen = _count(api.wait_for_run("killed", bool, "to appear"))
    api.wait_for_run("killed", lambda run: _count(run) > seen + 100, "100 samples more")


def _count(run: dict[str, Any]) -> int:
    return int(run["ranks"][0]["samples_received"])

"""``kill -9`` of the server in mid-run: the job goes on, and every row is stored exactly once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.server_process import ServerProcess

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    foreign_lines,
    start,
    wait_until,
    watched_command,
)

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
                seen = _samples(api)
                api.wait_for_run(
                    "killed", lambda run, seen=seen: _count(run) > seen + 100, "100 samples more"
                )
                server.kill()
                server.restart()
            seen = _samples(api)
            api.wait_for_run("killed", lambda run: _count(run) > seen + 100, "100 samples more")
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


def _count(run: dict[str, object]) -> int:
    ranks = run["ranks"]
    assert isinstance(ranks, list)
    return int(ranks[0]["samples_received"])


def _samples(api: Api) -> int:
    run = wait_until(lambda: api.wait_for_run("killed", bool, "to appear"), bool, "the run")
    return _count(run)

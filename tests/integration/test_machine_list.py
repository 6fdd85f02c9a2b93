"""The page's list of jobs: a real server asks a real ``vramscope ps`` about real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import Api, finish, plain_command, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

TOKEN = "machine-list"
SCRIPT = Path(__file__).parents[1] / "support" / "jobs" / "cpu_training.py"
FOREVER = ("--until-terminated", "--pause-s", "0.02")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, token=TOKEN, options=["--allow-attach"]) as running:
        yield running


def test_what_trains_here_is_listed_and_what_is_attached_names_its_run(
    server: ServerProcess,
) -> None:
    api = Api(server.url, TOKEN)

    def listed(pid: int) -> dict[str, Any] | None:
        jobs = api.get("/api/v1/machine/jobs")["jobs"]
        return next((job for job in jobs if job["pid"] == pid), None)

    alone = start(plain_command(SCRIPT, *FOREVER))
    watched = start(watched_command(SCRIPT, *FOREVER, url=server.url, token=TOKEN, run="watched"))
    try:
        found = server.wait_until(lambda: listed(alone.pid), 60)
        assert found is not None
        assert (found["attached"], found["run"]) == (False, None)
        assert "cpu_training.py" in found["command"]

        def with_run() -> dict[str, Any] | None:
            job = listed(watched.pid)
            return job if job is not None and job["run"] else None

        known = server.wait_until(with_run, 60)
        assert known is not None
        assert known["attached"] is True
        assert known["run"] == {"id": api.get("/api/v1/runs/watched")["id"], "name": "watched"}
    finally:
        for process in (alone, watched):
            process.terminate()
        for process in (alone, watched):
            finish(process)
    assert server.wait_until(lambda: listed(alone.pid) is None)

"""Jobs that run out of memory where nothing else works either."""

from __future__ import annotations

import json
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
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/runs_out.py"
EMULATED = ("--emulate", "--capacity", "64MiB")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    folder = tmp_path / "server"
    folder.mkdir()
    with ServerProcess(folder) as started:
        yield started


def command(server: ServerProcess, spool: Path, run: str, *arguments: str) -> list[str]:
    options = (*EMULATED, "--spool-dir", str(spool))
    return watched_command(
        JOB, *arguments, url=server.url, token=server.token, run=run, options=options
    )


def reports(spool: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(spool.glob("ooms/oom-*.json"))]


def listed(api: Api, run: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/api/v1/runs/{run}/ooms")["ooms"]
    return found


def test_killed_right_after_it_leaves_a_whole_report_that_the_next_job_delivers(
    server: ServerProcess, tmp_path: Path
) -> None:
    api, spool, go = Api(server.url, server.token), tmp_path / "spool", tmp_path / "go"
    job = start(command(server, spool, "killed", "--wait-for", str(go), "--end", "kill"))
    api.wait_for_run("killed", lambda run: (run["step"] or 0) > 0, "its first step")
    server.kill()
    go.touch()
    code, _, _ = finish(job)
    assert code == -9
    (report,) = reports(spool)
    assert (report["complete"], report["run_name"]) == (True, "killed")
    assert report["threads"][0]["raised"]

    server.start()
    code, _, errors = finish(start(command(server, spool, "next", "--end", "go on")))
    assert (code, foreign_lines(errors)) == (0, [])
    (found,) = wait_until(
        lambda: listed(api, "killed"), lambda found: len(found) == 1, "the report that was left"
    )
    assert found["id"] == report["id"]
    assert found["recovered_step"] is None
    assert reports(spool) == []
    (own,) = listed(api, "next")
    assert own["id"] != found["id"]


def test_on_a_full_disk_the_job_gets_its_error_and_the_server_the_report(
    server: ServerProcess, tmp_path: Path
) -> None:
    """No file may grow beyond what PyTorch itself tries before it starts."""
    spool = tmp_path / "spool"
    watched = command(server, spool, "full", "--end", "go on")
    code, output, errors = finish(start(["prlimit", "--fsize=512", "--", *watched]))
    assert (code, foreign_lines(errors)) == (0, [])
    assert output == "trained\nOutOfMemoryError True\n"
    assert reports(spool) == []
    api = Api(server.url, server.token)
    (found,) = wait_until(
        lambda: listed(api, "full"), lambda found: found[0]["recovered_step"] == 6, "its next step"
    )
    assert found["detail"] == "full"


def test_a_job_that_dies_of_it_dies_of_its_own_error(server: ServerProcess, tmp_path: Path) -> None:
    code, _, errors = finish(start(command(server, tmp_path / "spool", "dies")))
    assert code == 1
    lines = foreign_lines(errors)
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate")
    assert not any("/oom/" in line for line in lines)
    api = Api(server.url, server.token)
    (found,) = wait_until(
        lambda: listed(api, "dies"), lambda found: found[0]["is_fatal"], "the end to be noted"
    )
    assert lines[-1].endswith(found["message"])

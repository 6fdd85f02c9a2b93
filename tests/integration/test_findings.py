"""A real job that leaks, on a real server: suspected, looked into by itself, told to the line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, finish, start, watched_command
from tests.support.server_process import ServerProcess

JOB = REPOSITORY / "tests/support/jobs/leaking_training.py"
RUN = "/api/v1/runs/leaking"

pytestmark = pytest.mark.torch


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as started:
        yield started


def leak_line() -> str:
    lines = enumerate(JOB.read_text().splitlines(), 1)
    return next(f"leaking_training.py:{n}" for n, line in lines if line.endswith("# the leak"))


def leaks(server: ServerProcess, state: str = "all") -> list[dict[str, Any]]:
    answer = server.request("GET", f"{RUN}/findings?state={state}")
    found: list[dict[str, Any]] = answer.body["findings"] if answer.status == 200 else []
    return [finding for finding in found if finding["kind"] == "leak"]


def confirmed(server: ServerProcess) -> list[dict[str, Any]]:
    return [finding for finding in leaks(server) if finding["stage"] == "confirmed"]


def test_a_leak_is_found_asked_about_and_told_with_its_line(server: ServerProcess) -> None:
    command = watched_command(
        JOB,
        url=server.url,
        token=server.token,
        run="leaking",
        options=["--emulate", "--capacity=8GiB"],
    )
    job = start(command)
    try:
        (found,) = server.wait_until(lambda: confirmed(server), 90)
        assert (found["subject"], found["state"], found["ranks"]) == (leak_line(), "open", [0])
        assert any(
            f"{each['file'].rsplit('/')[-1]}:{each['line']}" == leak_line()
            for each in found["culprits"]
        )
        assert found["remedies"], found
        # An answer that comes before anything was said opens it confirmed; a later one confirms it.
        assert [entry["what"] for entry in found["history"]] in (
            ["opened"],
            ["opened", "confirmed"],
        )
        asked = [
            each
            for each in server.get(f"{RUN}/commands")["commands"]
            if each["name"] == "explain_growth"
        ]
        assert {each["issued_by"] for each in asked} == {"vramscope"}
        assert "done" in {each["state"] for each in asked}
        assert server.get("/api/v1/audit")["audit"][0]["who"] == "vramscope"
        # A server that dies loses nothing of it.
        server.restart()
        server.wait_until(lambda: server.get(RUN)["ranks_connected"], 30)
        judged = server.wait_until(lambda: server.get(f"{RUN}/findings")["judged_ns"], 60)
        later = server.wait_until(lambda: server.get(f"{RUN}/findings")["judged_ns"] > judged, 60)
        assert later
        (still,) = leaks(server)
        assert (still["id"], still["stage"], still["state"]) == (found["id"], "confirmed", "open")
    finally:
        job.kill()
        finish(job)
    # And what held when the job died is its verdict.
    server.wait_until(lambda: not leaks(server, "open"), 60)
    (verdict,) = leaks(server, "verdict")
    assert (verdict["id"], verdict["state"]) == (found["id"], "final")
    assert server.get(RUN)["finding"]["id"] == found["id"]

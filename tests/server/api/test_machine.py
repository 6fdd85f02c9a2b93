from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.server_app import HOST, OWNER, ServerApp, server_app
from vramscope_server.machine.training_jobs import JobList

PATH = "/api/v1/machine/jobs"
STARTED_NS = 1_700_000_000_000_000_000


class FakeJobs:
    def __init__(self) -> None:
        self.asked = 0
        self.jobs: list[dict[str, Any]] = []

    async def list_jobs(self) -> JobList:
        self.asked += 1
        return JobList(self.jobs, 5)

    async def stop(self) -> None:
        pass


@pytest.fixture
def jobs() -> FakeJobs:
    return FakeJobs()


@pytest.fixture
def here(tmp_path: Path, jobs: FakeJobs) -> Iterator[ServerApp]:
    """A server with the option, and a client on its machine."""
    with server_app(tmp_path, allow_attach=True) as server:
        server.context.training_jobs = jobs  # type: ignore[assignment]
        server.client = TestClient(
            server.application, base_url=f"http://{HOST}", client=("127.0.0.1", 5)
        )
        yield server


def test_the_list_names_the_run_of_what_is_attached(here: ServerApp, jobs: FakeJobs) -> None:
    job = {"pid": 4321, "command": "python train.py", "attached": True, "started_ns": STARTED_NS}
    jobs.jobs = [job, job | {"pid": 5}, {"command": "no number"}]
    with here.agent(host=socket.gethostname(), pid=4321) as agent:
        body = here.get(PATH)
        run = {"id": agent.run.id, "name": agent.run.name}
    assert body["taken_ns"] == 5
    assert body["jobs"][0] == job | {"run": run}
    assert [one["run"] for one in body["jobs"][1:]] == [None, None]
    assert here.get("/api/v1/session")["server"]["attach_list"] is True


def test_a_server_without_the_option_lists_nothing(server: ServerApp) -> None:
    error = server.get_error(PATH, 403)
    assert "--allow-attach" in error["message"]


@pytest.mark.parametrize(
    ("peer", "headers"),
    [("10.0.0.9", {}), ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"})],
)
def test_another_machine_gets_no_list(
    here: ServerApp, jobs: FakeJobs, peer: str, headers: dict[str, str]
) -> None:
    there = TestClient(here.application, base_url=f"http://{HOST}", client=(peer, 5))
    assert there.get(PATH, headers=OWNER | headers).status_code == 403
    session = there.get("/api/v1/session", headers=OWNER | headers).json()
    assert session["server"]["attach_list"] is False
    assert jobs.asked == 0


def test_a_caller_who_may_only_look_gets_no_list(here: ServerApp, jobs: FakeJobs) -> None:
    guest = {"authorization": f"Bearer {here.make_token('view')}"}
    assert here.client.get(PATH, headers=guest).status_code == 403
    assert here.client.get(PATH).status_code == 401
    session = here.client.get("/api/v1/session", headers=guest).json()
    assert session["server"]["attach_list"] is False
    assert jobs.asked == 0


def test_a_page_inside_another_one_gets_no_list(here: ServerApp, jobs: FakeJobs) -> None:
    with here.agent() as agent:
        made = here.post(f"/api/v1/runs/{agent.run.id}/frames", {"scopes": ["view", "control"]})
    framed = {"authorization": f"Bearer {made.json()['token']}"}
    session = here.client.get("/api/v1/session", headers=framed).json()
    assert "control" in session["scopes"]
    assert session["server"]["attach_list"] is False
    assert here.client.get(PATH, headers=framed).status_code == 403
    assert jobs.asked == 0

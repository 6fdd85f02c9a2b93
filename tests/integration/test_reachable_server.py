"""A real job beside a real server that other machines can reach: it says itself what it allows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180)]
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/commanded.py"
RUN = "commanded"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("server")
    with ServerProcess(folder, options=["--host", "0.0.0.0"]) as server:
        yield Api(server.url, server.token)  # by a loopback address, as through a tunnel


@pytest.mark.parametrize(
    ("options", "allow"), [((), "observe"), (("--allow", "control"), "control")]
)
def test_it_acts_on_the_job_where_the_job_was_started_so(
    api: Api, options: tuple[str, ...], allow: str
) -> None:
    run = f"{RUN}-{allow}"
    job = start(
        watched_command(JOB, url=api.url, token=api.token, run=run, options=("--emulate", *options))
    )
    try:
        told = api.wait_for_run(
            run, lambda told: told["ranks"][0]["allow"] == allow and told["step"], "its word"
        )
        seen = api.command(run, "stats")
        if allow == "control":
            acted = api.command(run, "gc_collect")
    finally:
        job.terminate()
        _, _, errors = finish(job)
    assert seen["state"] == "done"
    commands = told["ranks"][0]["commands"]
    if allow == "control":
        assert acted["state"] == "done"
        assert "other machines" not in errors
    else:
        assert "gc_collect" not in commands
        assert "user.save" not in commands
        assert errors.count("other machines can reach the server") == 1

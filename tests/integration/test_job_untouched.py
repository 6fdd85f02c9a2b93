"""With the agent, the script's output and exit code are what they are without it."""

from __future__ import annotations

from collections.abc import Iterator

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

JOB = REPOSITORY / "tests/support/jobs/cpu_training.py"

EXIT_CODE = 3
ARGUMENTS = ("--steps=60", f"--exit-code={EXIT_CODE}")

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server")) as process:
        yield process


@pytest.fixture(scope="module")
def plain() -> tuple[int, str, str]:
    """What the script does without the agent."""
    return finish(start(plain_command(JOB, *ARGUMENTS)))


@pytest.mark.parametrize("options", [(), ("--emulate", "--capacity=1GiB")])
def test_output_and_exit_code_are_the_same(
    server: ServerProcess, plain: tuple[int, str, str], options: tuple[str, ...]
) -> None:
    name = f"same-{len(options)}"
    code, output, errors = finish(
        start(
            watched_command(
                JOB, *ARGUMENTS, url=server.url, token=server.token, run=name, options=options
            )
        )
    )
    assert (code, output, foreign_lines(errors)) == (plain[0], plain[1], plain[2].splitlines())
    assert code == EXIT_CODE
    run = Api(server.url, server.token).wait_for_run(
        name, lambda run: run["state"] == "ended", "to end"
    )
    assert run["ranks"][0]["exit_code"] == EXIT_CODE
    assert run["ranks"][0]["steps_received"] == 60
    assert run["emulated"] is bool(options)


def test_a_killed_job_becomes_lost_and_never_stays_live(server: ServerProcess) -> None:
    arguments, run_name = ("--until-terminated", "--pause-s=0.01"), "killed-job"
    job = start(watched_command(JOB, *arguments, url=server.url, token=server.token, run=run_name))
    api = Api(server.url, server.token)
    try:
        run = api.wait_for_run(run_name, lambda run: (run["step"] or 0) > 5, "first steps")
        assert run["state"] == "live"
    finally:
        job.kill()
        finish(job)
    run = api.wait_for_run(run_name, lambda run: run["state"] == "lost", "to be lost")
    assert run["ranks"][0]["exit_code"] is None

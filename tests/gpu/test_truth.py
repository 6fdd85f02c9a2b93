"""On a real GPU: what is stored equals what the job itself saw, and the job does not notice."""

from __future__ import annotations

import json
from collections.abc import Iterator
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

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(500)]

JOB = REPOSITORY / "tests/support/jobs/gpu_training.py"
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
STEPS = 1000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as process:
        yield process


def test_every_stored_step_equals_the_jobs_own_log_counter_by_counter(
    server: ServerProcess, tmp_path: Path
) -> None:
    log = tmp_path / "own.jsonl"
    command = watched_command(
        JOB,
        f"--steps={STEPS}",
        f"--log={log}",
        url=server.url,
        token=server.token,
        run="truth",
    )
    code, output, errors = finish(
        start(command, VRAMSCOPE_FIELDS="all", **DETERMINISTIC), timeout_s=300
    )
    assert (code, foreign_lines(errors)) == (0, []), output + errors
    own = [json.loads(line) for line in log.read_text().splitlines()]
    api = Api(server.url, server.token)
    rank = api.wait_for_run("truth", lambda run: run["state"] == "ended", "to end")["ranks"][0]
    assert rank["samples_lost"] == 0
    assert rank["steps_received"] == STEPS

    names = sorted(own[0])
    stored = api.get(f"/api/v1/runs/truth/steps?rank=0&fields={','.join(names)}")
    assert stored["step"] == list(range(1, STEPS + 1))
    assert len(names) >= 100
    for name in names:
        assert stored["columns"][name] == [row[name] for row in own], name


def test_the_loss_is_bit_identical_with_and_without_the_agent(server: ServerProcess) -> None:
    plain = finish(start(plain_command(JOB, "--steps=300"), **DETERMINISTIC))
    watched = finish(
        start(
            watched_command(
                JOB, "--steps=300", url=server.url, token=server.token, run="identical"
            ),
            **DETERMINISTIC,
        )
    )
    assert plain[:2] == watched[:2]
    assert plain[1].startswith("final loss ")

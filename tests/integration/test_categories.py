"""Real training jobs on an emulated device: categories as the job itself counts them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_server import FakeServer
from tests.support.job_process import (
    REPOSITORY,
    child_environment,
    finish,
    foreign_lines,
    start,
    watched_command,
)
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import AgentStatus, Event

pytest.importorskip("transformers")

JOB = REPOSITORY / "tests/support/jobs/categories.py"
PATHS = os.pathsep.join([child_environment()["PYTHONPATH"], str(REPOSITORY)])
EMULATE = ["--emulate", "--capacity=4GiB"]
CATEGORIES = ("parameters", "gradients", "optimizer_state", "buffers")
STEPS = 8
BLOCKS = 64 * 1024
"""Room for the rounding of the small storages of these jobs."""

pytestmark = [pytest.mark.torch, pytest.mark.timeout(240)]


def last_line(path: Path) -> dict[str, int]:
    counted: dict[str, int] = json.loads(path.read_text().splitlines()[-1])
    return counted


def assert_as_counted(row: dict[str, Any], counted: dict[str, int]) -> None:
    for name in CATEGORIES:
        measured, expected = row[f"category.{name}_bytes"], counted[name]
        assert expected <= measured <= expected * 1.01 + BLOCKS, name
    assert (
        sum(row[f"category.{name}_bytes"] for name in CATEGORIES)
        <= (row["allocated_bytes.all.current"])
    )


@pytest.mark.parametrize("kind", ["amp", "checkpointing", "gan"])
def test_categories_of_a_job_are_those_that_it_counts_itself(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "log"
    with FakeServer() as server:
        command = watched_command(
            JOB,
            kind,
            str(log),
            url=server.url,
            token=server.token,
            run=kind,
            options=EMULATE,
        )
        code, output, errors = finish(start(command, PYTHONPATH=PATHS))
        assert (code, output, foreign_lines(errors)) == (0, "", [])
        rows = list(server.rows("step"))
        status = server.status
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert_as_counted(rows[-1], last_line(tmp_path / "log.0"))
    # By default gradients are gone when the next backward begins.
    assert {row["category.gradients_kept_bytes"] for row in rows} <= {0, UNKNOWN}
    assert isinstance(status, AgentStatus)
    assert status.guard_errors == 0


def test_categories_of_a_sharded_model_are_what_each_rank_holds(tmp_path: Path) -> None:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    job = [str(JOB), "fsdp", str(tmp_path / "log")]
    watched = [sys.executable, "-m", "vramscope", "run", *EMULATE, *job]
    with FakeServer() as server:
        process = start(
            [sys.executable, *torchrun, "--no-python", *watched],
            OMP_NUM_THREADS="1",
            VRAMSCOPE_URL=server.url,
            VRAMSCOPE_TOKEN=server.token,
            PYTHONPATH=PATHS,
        )
        code, output, errors = finish(process, timeout_s=200)
        assert code == 0, output + errors
        rows = [row for row in server.rows("step") if row["step"] == STEPS]
    assert len(rows) == 2
    logs = [last_line(tmp_path / f"log.{rank}") for rank in (0, 1)]
    # Both ranks have as much, within the padding of their shards.
    for row in rows:
        assert_as_counted(row, logs[0])
    whole = 4 * (3 * 12 * 192 * 192 + 2 * 4000 * 192)
    assert logs[0]["parameters"] == pytest.approx(whole / 2, rel=0.05)


def test_models_from_before_the_agent_are_found(tmp_path: Path) -> None:
    with FakeServer() as server:
        job = start(
            [sys.executable, str(JOB), "late", str(tmp_path / "log"), "--steps=10"],
            VRAMSCOPE_URL=server.url,
            VRAMSCOPE_TOKEN=server.token,
            VRAMSCOPE_EMULATE="1",
            VRAMSCOPE_CAPACITY="4GiB",
            PYTHONPATH=PATHS,
        )
        code, output, errors = finish(job)
        assert (code, output, foreign_lines(errors)) == (0, "", [])
        row = list(server.rows("step"))[-1]
        (event,) = [each for each in server.of_type(Event) if each.kind == "tensors"]
    assert_as_counted(row, last_line(tmp_path / "log.0"))
    assert event.data["is_complete"] is True
    assert event.data["modules"] > 20

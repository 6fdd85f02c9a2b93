"""One of two ranks runs out of memory in the first step with new sizes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, wait_until
from tests.support.server_process import ServerProcess
from tests.support.torchrun import torchrun

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

SCRIPT = REPOSITORY / "tests/support/jobs/ranks_run_out.py"
SAMPLES = 1920
DOUBLE = {"batch_size": 16, "accumulation": 1, "change_global_batch": True}
Job = Popen[str]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path, token="runs-out") as server:
        yield Api(server.url, "runs-out")


def doubled(api: Api, tmp_path: Path, way: str, then: Callable[[Job], Any]) -> dict[str, Any]:
    """What becomes of the command, for two ranks of which one has no room for it."""
    options = ["--emulate", "--capacity", "128MiB", "--spool-dir", str(tmp_path / "spool")]
    script = [str(SCRIPT), str(tmp_path / "end"), way]
    with torchrun(api, "double", 0, options, script) as job:
        api.wait_for_run(
            "double",
            lambda run: [(rank["step"] or 0) > 2 for rank in run["ranks"]] == [True, True],
            "steps on both ranks",
            timeout_s=120,
        )
        command = api.command("double", "set_batch_size", params=DOUBLE)
        then(job)
    return command


def test_both_ranks_go_back_together_and_train_on(api: Api, tmp_path: Path) -> None:
    told: list[tuple[int, str, str]] = []

    def train_on(job: Job) -> None:
        ranks = api.get("/api/v1/runs/double")["ranks"]
        reached = max(rank["step"] for rank in ranks)
        wait_until(
            lambda: api.get("/api/v1/runs/double")["ranks"],
            lambda ranks: all(rank["step"] > reached + 30 for rank in ranks),
            "steps after it",
            timeout_s=120,
        )
        (tmp_path / "end").touch()
        told.append(finish(job))

    command = doubled(api, tmp_path, "together", train_on)
    ((code, output, errors),) = told
    assert code == 0, errors
    first, second = (command["receipts"][rank] for rank in ("0", "1"))
    for receipt in (first, second):
        assert receipt["state"] == "failed"
        assert receipt["result"] == {"ran_out": True}
        assert receipt["after"]["batch_size"] == 8
        assert "on rank 1. It was rolled back on all ranks. It takes effect" in receipt["message"]
    assert first["message"] == second["message"]
    epochs: dict[int, list[Any]] = {0: [], 1: []}
    for line in output.splitlines():
        if line.startswith("epoch "):
            rank, seen, sizes = json.loads(line.removeprefix("epoch "))
            epochs[rank].append((seen, sizes))
    assert len(epochs[0]) == len(epochs[1])
    for (mine, sizes), (theirs, other_sizes) in zip(epochs[0], epochs[1], strict=True):
        assert sizes == other_sizes
        assert sorted([*mine, *theirs]) == list(range(SAMPLES))
    # One batch of them was tried, and left out by both.
    assert sum(sizes.count(16) for _, sizes in epochs[0]) == 1


def test_a_rank_that_leaves_its_batch_out_alone_is_not_followed(api: Api, tmp_path: Path) -> None:
    command = doubled(api, tmp_path, "alone", lambda _: None)
    first, second = (command["receipts"][rank] for rank in ("0", "1"))
    assert second["result"] == {"ran_out": True}
    assert "Memory ran out in the first step with it" in second["message"]
    assert "It was not rolled back: not all ranks came to batch" in second["message"]
    assert second["after"]["batch_size"] == 16
    assert "rolled back" not in first["message"]
    assert first["after"]["batch_size"] == 16


def test_a_job_that_ends_of_it_says_which_change_it_was(api: Api, tmp_path: Path) -> None:
    command = doubled(api, tmp_path, "raise", lambda _: None)
    receipt = command["receipts"]["1"]
    assert receipt["result"] == {"ran_out": True}
    assert receipt["message"].startswith("Memory ran out in the first step with it.")
    assert "It was not rolled back" in receipt["message"]
    found = wait_until(
        lambda: api.get("/api/v1/runs/double/ooms")["ooms"],
        lambda found: any(row["rank"] == 1 for row in found),
        "the report",
        60,
    )
    (row,) = (row for row in found if row["rank"] == 1)
    report = api.get(f"/api/v1/ooms/{row['id']}")
    assert report["report"]["new_sizes"]["after"]["batch_size"] == 16
    assert "batch size of 16" in report["finding"]["summary"], report["finding"]

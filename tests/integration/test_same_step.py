"""Commands on four ranks that train together: at the same step on all, and training unharmed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, child_environment, finish, wait_until
from tests.support.server_thread import TOKEN, server_thread
from tests.support.torchrun import torchrun
from vramscope_server.commands import step_choice

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/coordinated.py"
FORKED = REPOSITORY / "tests/support/jobs/forked_ranks.py"
RANKS = 4
COMMANDS = 20
LEAD_S = 0.3


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    # Ranks and server are on one machine: they need less time to hear of each other.
    monkeypatch.setattr(step_choice, "LEAD_S", LEAD_S)
    with server_thread(tmp_path) as server:
        yield Api(server.url, TOKEN)


def wait_for_steps(api: Api) -> None:
    """Wait until all ranks train, and the server knows how fast."""

    def trains(run: dict[str, Any]) -> bool:
        return len(run["ranks"]) == RANKS and all((r["step"] or 0) > 20 for r in run["ranks"])

    api.wait_for_run("four", trains, "all ranks to train", timeout_s=90)


def steps_of(command: dict[str, Any]) -> set[int]:
    """At which steps it ran."""
    assert command["state"] == "done", command
    assert sorted(command["receipts"]) == [str(rank) for rank in range(RANKS)]
    return {receipt["step"] for receipt in command["receipts"].values()}


def lines(folder: Path, name: str) -> list[list[str]]:
    """What each rank has written."""
    return [(folder / f"{name}-{rank}").read_text().split("\n") for rank in range(RANKS)]


def train_without(folder: Path, steps: int) -> None:
    """The same training with nobody watching."""
    script = [str(JOB), str(folder), "--steps", str(steps), "--pause-s", "0"]
    subprocess.run(
        [sys.executable, str(FORKED), str(RANKS), *script],
        env=child_environment(OMP_NUM_THREADS="1"),
        check=True,
        capture_output=True,
        timeout=240,
    )


def test_what_is_done_to_training_is_done_at_one_step_and_changes_no_loss(
    api: Api, tmp_path: Path
) -> None:
    acted: list[int] = []
    folder, twin = tmp_path / "watched", tmp_path / "alone"
    folder.mkdir()
    twin.mkdir()
    moments = random.Random(7)
    with torchrun(api, "four", 0, ["--emulate"], [str(JOB), str(folder)], ranks=RANKS) as job:
        wait_for_steps(api)
        for _ in range(COMMANDS):
            time.sleep(moments.uniform(0, 0.1))
            command = api.command("four", "empty_cache+gc_collect")
            acted += steps_of(command)
            for receipt in command["receipts"].values():
                before, after = (receipt[key]["reserved_bytes"] for key in ("before", "after"))
                assert receipt["returned_bytes"] == before - after >= 0
        paused = pause_and_resume(api)
        stopped = steps_of(api.command("four", "stop"))
        code, _, errors = finish(job)
    assert code == 0, errors
    assert len(acted) == COMMANDS  # each at one step
    assert acted == sorted(set(acted))
    (last,) = stopped
    assert acted[-1] < paused < last
    # The job itself says the same.
    assert [line[:-1] for line in lines(folder, "acted")] == [[str(each) for each in acted]] * RANKS
    assert lines(folder, "end") == [[f"Stopped {last}"]] * RANKS
    train_without(twin, last)
    assert lines(folder, "losses") == with_last(lines(twin, "losses"))


def with_last(losses: list[list[str]]) -> list[list[str]]:
    """Stopped out of the optimizer's step, the job has not noted the loss of that step."""
    return [each[:-1] for each in losses]


def pause_and_resume(api: Api) -> int:
    """Training stands still on all ranks at one step, as long as a person wants."""
    pause = api.post("/api/v1/runs/four/commands", {"name": "pause", "params": {"max_s": 60}})
    path = f"/api/v1/runs/four/commands/{pause['id']}"
    running = ["running"] * RANKS

    def states(command: dict[str, Any]) -> list[str]:
        return [receipt["state"] for receipt in command["receipts"].values()]

    wait_until(lambda: api.get(path), lambda command: states(command) == running, "the pause")
    begun_s = time.monotonic()
    before = told(api)
    time.sleep(1.2)
    after = told(api)
    assert [rank["step"] for rank in before] == [rank["step"] for rank in after]
    samples = [
        (one["samples_received"], two["samples_received"])
        for one, two in zip(before, after, strict=True)
    ]
    assert all(one < two for one, two in samples)  # it is watched on
    assert api.command("four", "resume")["state"] == "done"
    stood_s = time.monotonic() - begun_s
    done = wait_until(lambda: api.get(path), lambda command: command["state"] == "done", "the end")
    (step,) = steps_of(done)
    for receipt in done["receipts"].values():
        assert 1.2 <= receipt["took_s"] < stood_s + 3
        assert receipt["message"].endswith("until it was resumed.")
    return step


def told(api: Api) -> list[dict[str, Any]]:
    """What the server knows of each rank, once the last steps have come."""
    time.sleep(0.5)
    ranks: list[dict[str, Any]] = api.get("/api/v1/runs/four")["ranks"]
    return ranks

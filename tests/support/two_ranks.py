"""Acts on a job of two ranks at random moments, and holds what the ranks have seen against it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, child_environment, finish
from tests.support.server_thread import TOKEN, server_thread
from tests.support.torchrun import torchrun
from vramscope_server.commands import step_choice
from vramscope_server.settings import Limits

SCRIPT = REPOSITORY / "tests/support/jobs/two_ranks.py"
RANKS = 2
LEAD_S = 0.15
"""Ranks and server are on one machine: they need less time to hear of each other."""
LONGEST_MOMENT_S = 0.06
BATCH, ACCUMULATION = 8, 2
SIZES = (2, 4, 8, 16)


@dataclass(frozen=True)
class TwoRanks:
    """A job of ``jobs/two_ranks.py``.

    Args:
        folder: empty; the ranks write into it.
        how: ``ddp`` or ``fsdp``.
        device: ``cuda``, or ``cpu`` for an emulated one.
        samples: of an epoch.
        pause_s: after each step, so that the steps of a minute can be trained again in less.
    """

    folder: Path
    how: str
    device: str
    samples: int = 1536
    pause_s: float = 0.015

    @contextmanager
    def training(self, api: Api) -> Generator[subprocess.Popen[str]]:
        """While it is open, the job trains, and the server knows how fast."""
        self.folder.mkdir()
        script = [*self._command(self.folder), "--pause-s", str(self.pause_s)]
        options = ["--emulate"] if self.device == "cpu" else []
        with torchrun(api, self.how, 0, options, script, ranks=RANKS) as job:
            api.wait_for_run(
                self.how,
                lambda run: [(rank["step"] or 0) > 20 for rank in run["ranks"]] == [True] * RANKS,
                "both ranks to train",
                timeout_s=120,
            )
            yield job

    def end(self, job: subprocess.Popen[str]) -> None:
        """Have it end after its epoch."""
        (self.folder / "end").touch()
        code, _, errors = finish(job, timeout_s=90)
        assert code == 0, errors

    def train_alone(self, folder: Path, steps: int) -> None:
        """The same training with nobody watching."""
        folder.mkdir()
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]
        subprocess.run(
            [sys.executable, *launcher, *self._command(folder), "--steps", str(steps)],
            env=child_environment(OMP_NUM_THREADS="1"),
            check=True,
            capture_output=True,
            timeout=120,
        )

    def _command(self, folder: Path) -> list[str]:
        options = ["--samples", str(self.samples)]
        return [str(SCRIPT), str(folder), self.how, self.device, *options]


@contextmanager
def patient_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Api]:
    """A server that takes as many commands as it gets, each for a step that comes soon."""
    monkeypatch.setattr(step_choice, "LEAD_S", LEAD_S)
    with server_thread(folder, Limits(command_burst=100_000)) as server:
        yield Api(server.url, TOKEN)


def check_empty_caches(api: Api, ranks: TwoRanks, count: int) -> None:
    """Empty the cache so often: at one step on both ranks, and no loss has another bit."""
    moments = random.Random(7)
    acted: list[int] = []
    returning: list[list[int]] = [[], []]
    with ranks.training(api) as job:
        for _ in range(count):
            time.sleep(moments.uniform(0, LONGEST_MOMENT_S))
            command = api.command(ranks.how, "empty_cache")
            acted.append(step_of(command))
            for rank, steps in enumerate(returning):
                if command["receipts"][str(rank)]["returned_bytes"]:
                    steps.append(acted[-1])
        ranks.end(job)
    assert acted == sorted(set(acted))
    for rank, steps in enumerate(returning):
        assert len(steps) >= 0.8 * count
        assert steps == json.loads(_text(ranks.folder, "acted", rank))  # the job says the same
    losses = [_text(ranks.folder, "losses", rank).split("\n") for rank in range(RANKS)]
    assert len(losses[0]) == len(losses[1])
    alone = ranks.folder.with_name("alone")
    ranks.train_alone(alone, len(losses[0]) // ACCUMULATION)
    assert losses == [_text(alone, "losses", rank).split("\n") for rank in range(RANKS)]


def check_resizes(api: Api, ranks: TwoRanks, count: int) -> None:
    """Change the sizes so often: both ranks take the same batches, and each sample once."""
    moments = random.Random(8)
    size = BATCH
    with ranks.training(api) as job:
        for _ in range(count):
            time.sleep(moments.uniform(0, LONGEST_MOMENT_S))
            size = moments.choice([each for each in SIZES if each != size])
            accumulation = BATCH * ACCUMULATION // size
            if moments.random() < 0.5:
                params = {"batch_size": size}
                command = api.command(ranks.how, "set_batch_size", params=params)
            else:
                params = {"accumulation": accumulation}
                command = api.command(ranks.how, "set_accumulation", params=params)
            step_of(command)
            for receipt in command["receipts"].values():
                assert receipt["after"]["batch_size"] == size, command
                assert receipt["after"]["accumulation"] == accumulation, command
        ranks.end(job)
    first, second = (_epochs(ranks.folder, rank) for rank in range(RANKS))
    assert len(first) == len(second)
    for (mine, sizes, steps), (theirs, other_sizes, other_steps) in zip(first, second, strict=True):
        assert sizes == other_sizes
        assert sorted([*mine, *theirs]) == list(range(ranks.samples))
        assert {*steps, *other_steps} == {BATCH * ACCUMULATION}
    assert {each for _, sizes, _ in first for each in sizes} <= set(SIZES)
    changes = sum(before != after for _, sizes, _ in first for before, after in pairwise(sizes))
    print(f"{ranks.how}: {count} changes, {changes} of them within an epoch; {len(first)} epochs")
    assert changes >= count // 2


def step_of(command: dict[str, Any]) -> int:
    """The one step at which all ranks have run it."""
    assert command["state"] == "done", command
    assert len(command["receipts"]) == RANKS
    (step,) = {receipt["step"] for receipt in command["receipts"].values()}
    return int(step)


def _text(folder: Path, name: str, rank: int) -> str:
    return (folder / f"{name}-{rank}").read_text()


def _epochs(folder: Path, rank: int) -> list[tuple[list[int], list[int], list[int]]]:
    return [tuple(json.loads(line)) for line in _text(folder, "epochs", rank).splitlines()]

"""The demo's training script: trains for real, and has the habits that the page should show."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import vramscope.demo

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

SCRIPT = Path(vramscope.demo.__file__).with_name("train.py")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_trains_and_prints_its_loss() -> None:
    done = run("--steps", "2")
    assert (done.returncode, done.stderr) == (0, "")
    first, last = done.stdout.splitlines()
    assert first.startswith("training ")
    assert last.startswith("step      2  healthy")
    assert 0 < float(last.split()[-1]) < 20


def test_refuses_no_steps() -> None:
    done = run("--steps", "0")
    assert done.returncode == 2
    assert "--steps: expected 1 or more, got 0" in done.stderr


def test_does_not_know_that_it_is_watched() -> None:
    imports = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(SCRIPT.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    assert "vramscope" not in imports


def test_is_healthy_once_and_leaks_from_then_on() -> None:
    from vramscope.demo.train import HEALTHY_STEPS, phases

    names = list(itertools.islice(phases(), 590))
    assert [name for name, _ in itertools.groupby(names)] == [
        "healthy",
        *["leaking", "varlen"] * 2,
    ]
    assert names.count("healthy") == HEALTHY_STEPS


def test_begins_again_when_memory_runs_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from vramscope.demo import train

    steps: list[tuple[str, int]] = []

    def runs_out(_model: Any, _optimizer: Any, _batch: Any, habits: train.Habits) -> Any:
        steps.append((habits.phase, len(habits.logged)))
        if habits.phase == "leaking":
            habits.logged.append(torch.zeros(1))
            raise torch.OutOfMemoryError("no")
        return torch.zeros(())

    monkeypatch.setattr(train, "train_step", runs_out)
    monkeypatch.setattr(train, "HEALTHY_STEPS", 2)
    monkeypatch.setattr(train, "LEAST_STEP_S", 0.0)
    train.train(5)
    assert steps == [("healthy", 0), ("healthy", 0), ("leaking", 0), ("healthy", 0), ("healthy", 0)]
    assert "step      3  out of memory; once more" in capsys.readouterr().out


def test_habits_keep_a_log_until_the_job_begins_again() -> None:
    from vramscope.demo.train import Habits, Size, batches, build_model, train_step

    size = Size(2, 16, 2, 64, batch=2, length=8)
    generator = torch.Generator().manual_seed(0)
    model = build_model(size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    habits = Habits()
    kept: list[int] = []
    lengths: list[int] = []
    phases = ("healthy", "leaking", "leaking", "varlen", "varlen", "healthy")
    for phase, sequences in zip(phases, batches(size), strict=False):
        habits.enter(phase)
        batch = sequences[:, : habits.length(size, generator) + 1]
        lengths.append(batch.shape[1] - 1)
        assert train_step(model, optimizer, batch, habits).item() > 0
        kept.append(len(habits.logged) + len(habits.features))
    assert kept == [0, 1, 2, 4, 6, 0]
    assert lengths[:3] == [8, 8, 8]
    assert all(2 <= length < 16 for length in lengths[3:5])


def test_each_epoch_has_every_sentence_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from vramscope.demo import train

    size = train.Size(1, 16, 2, 1024, batch=2, length=8)
    monkeypatch.setattr(train.Sentences.__init__, "__defaults__", (6,))
    epochs = [torch.cat(list(itertools.islice(drawn, 3))) for drawn in [train.batches(size)] * 2]
    assert epochs[0].shape == (6, 16)
    assert sorted(epochs[0].tolist()) == sorted(epochs[1].tolist())

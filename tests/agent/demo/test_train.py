"""The demo's training script: trains for real, and has the habits that the page should show."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
from pathlib import Path

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


def test_goes_round_its_phases() -> None:
    from vramscope.demo.train import PHASES, phases

    once = sum(steps for _, steps in PHASES)
    names = list(itertools.islice(phases(), 2 * once))
    assert [name for name, _ in itertools.groupby(names)] == [name for name, _ in PHASES] * 2
    assert names[:once] == names[once:]


def test_habits_leak_in_one_phase_and_let_go_at_its_end() -> None:
    from vramscope.demo.train import Habits, Size, build_model, sample_batch, train_step

    size = Size(2, 16, 2, 64, batch=2, length=8)
    generator = torch.Generator().manual_seed(0)
    model = build_model(size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    habits = Habits()
    kept: list[int] = []
    lengths: list[int] = []
    for phase in ("healthy", "leaking", "leaking", "varlen", "varlen", "healthy"):
        habits.enter(phase)
        batch = sample_batch(size, habits.length(size, generator), generator)
        lengths.append(batch.shape[1] - 1)
        assert train_step(model, optimizer, batch, habits).item() > 0
        kept.append(len(habits.logged) + len(habits.features))
    assert kept == [0, 1, 2, 1, 2, 0]
    assert lengths[:3] == [8, 8, 8]
    assert all(2 <= length < 16 for length in lengths[3:5])

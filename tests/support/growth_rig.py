"""Runs the source of a job in this process, on an emulated device, and asks what grows in it."""

from __future__ import annotations

import gc
import itertools
import sys
import textwrap
import types
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.history_rig import HistoryRig
from vramscope.growth import pace
from vramscope.growth.growth_watch import GrowthWatch
from vramscope.growth.optimizers_in_use import OptimizersInUse
from vramscope.growth.recording import StackRecording
from vramscope.history.history import History
from vramscope.history.pytorch_history import PytorchHistory
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import ExplainGrowthParams

HEAD = """\
import collections, functools, gc, torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.Adam(model.parameters())
def train():
    loss = model(torch.ones(8, 64)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step(optimizer)
"""
"""Begins every source: a job that trains, and whose steps are told."""


class GrowthRig:
    """One job, and one question.

    Args:
        folder: for its source.
        first: the step after which the question is asked.
        params: how.
    """

    def __init__(self, folder: Path, first: int = 3, **params: Any) -> None:
        self.folder = folder
        self.first = first
        self.params = ExplainGrowthParams(**{"max_steps": 60, "max_ms": 5000, **params})
        self.steps = 0
        self.costs_ns: list[int] = []
        self.watch: GrowthWatch | None = None
        self.receipt: Receipt | None = None
        self.so_far: list[Receipt] = []
        """What was told before the receipt."""
        self.on_answer: Callable[[], object] = bool
        self.optimizers = OptimizersInUse(lambda: self.steps)
        self.before_poll: Callable[[], Receipt | None] = lambda: None
        self.history: History | None = None

    def run(self, source: str) -> dict[str, Any]:
        """Run it until there is an answer; its report."""
        from vramscope.emulation import start_emulation

        path = self.folder / "train.py"
        path.write_text(HEAD + textwrap.dedent(source))
        emulation = start_emulation(4 << 30)
        rig = HistoryRig(self.folder)
        self.history = History(
            PytorchHistory(emulated=True),
            emulation.device,
            rig.folder,
            rig.shipped.append,
            rig.history._self_cost,
        )

        def step(optimizer: Any = None) -> None:
            self._step(emulation.device, optimizer)

        try:
            with _main_module(path) as main:
                main.__dict__.update(step=step, STEPS=_until(lambda: self.receipt is not None))
                exec(compile(path.read_text(), str(path), "exec"), main.__dict__)
        finally:
            emulation.stop()
            gc.collect()
        assert self.receipt is not None, "the job ended before there was an answer"
        assert self.receipt.state == "done", self.receipt.message
        report: dict[str, Any] = self.receipt.result
        return report

    def line(self, text: str) -> int:
        """Number of the first line of the source with a text."""
        lines = (self.folder / "train.py").read_text().splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)

    def _step(self, device: Any, optimizer: Any) -> None:
        self.steps += 1
        if optimizer is not None:
            self.optimizers.saw_optimizer(optimizer)
        if self.receipt is not None:
            return
        if self.steps == self.first:
            assert self.history is not None
            self.watch = GrowthWatch(
                device,
                StackRecording(self.history),
                self.params,
                "asked",
                self.costs_ns.append,
                self.optimizers.in_use,
                self.on_answer,
            )
        elif self.watch is not None:
            self.receipt = self.before_poll()
            if self.receipt is None:
                told = self.watch.poll(self.steps) or self.watch.poll_on_agent_thread()
                if told is not None and told.state == "running":
                    self.so_far.append(told)
                else:
                    self.receipt = told


def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let looks and searches come at the first step that they may come at."""
    monkeypatch.setattr(pace, "SHARE", 10**9)


def _until(is_over: Callable[[], bool], most: int = 400) -> Any:
    """Numbers for the loop of a job, which ends when it has been answered."""
    return itertools.takewhile(lambda number: not is_over() and number < most, itertools.count())


@contextmanager
def _main_module(path: Path) -> Generator[types.ModuleType]:
    main = types.ModuleType("__main__")
    main.__file__ = str(path)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield main
    finally:
        sys.modules["__main__"] = before
        if was_on:
            gc.enable()


def holder_of(report: dict[str, Any], group: int = 0) -> dict[str, Any]:
    """The most frequent holder of a group."""
    holder: dict[str, Any] = report["groups"][group]["holders"][0]
    return holder


def line_of(group: dict[str, Any]) -> int:
    """The line of the job that allocated."""
    return next(int(frame["line"]) for frame in group["stack"] if "train.py" in frame["file"])

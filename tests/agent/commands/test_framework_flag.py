"""The flag of a framework is found on the stack of the thread that trains, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vramscope.commands.framework_flag import raise_flag

TRAINER = """
class Control:
    should_training_stop = False

class Trainer:
    def __init__(self):
        self.control = Control()
        self.should_stop = False

    def _inner_training_loop(self, step):
        return step()

    def _run_stage(self, step):
        return step()

    def evaluate(self, step):
        return step()
"""


@pytest.fixture(params=["transformers.trainer", "lightning.pytorch.trainer.trainer"])
def trainer(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """An object whose loop stands in the module of a framework, whichever is installed."""
    path = tmp_path / "trainer.py"
    path.write_text(TRAINER)
    module = ModuleType(request.param)
    module.__file__ = str(path)
    exec(compile(TRAINER, str(path), "exec"), module.__dict__)
    for name in ("transformers.trainer", "lightning.pytorch.trainer.trainer"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, request.param, module)
    found = module.__dict__["Trainer"]()
    found.loop = found._inner_training_loop if "transf" in request.param else found._run_stage
    yield found
    found.loop = None


def is_told(trainer: Any) -> bool:
    return bool(trainer.control.should_training_stop or trainer.should_stop)


def test_the_framework_that_trains_is_told_and_named(trainer: Any) -> None:
    assert trainer.loop(raise_flag).startswith("The Trainer of ")
    assert is_told(trainer)


def test_one_that_does_not_train_is_left_alone(trainer: Any) -> None:
    assert raise_flag() == ""
    assert trainer.evaluate(raise_flag) == ""
    assert not is_told(trainer)


def test_one_without_a_flag_is_none(trainer: Any) -> None:
    del trainer.control, trainer.should_stop
    assert trainer.loop(raise_flag) == ""


def test_nothing_of_it_is_imported_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(sys.modules)
    assert raise_flag() == ""
    assert not {name for name in set(sys.modules) - before if name.startswith("transformers")}

"""Of an object that keeps what it is given, the line that gives is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from vramscope.holders.calling_line import calling_line
from vramscope.holders.holder import SourceLine, StoreTarget

SOURCE = """\
class Metric:
    def update(self, p):
        self.preds.append(p.detach())
    def evaluate(self):
        pred = 1
        self.preds.append(pred)
def main():
    metric = Metric()
    metric.evaluate()
    for p in range(3):
        metric.update(p)
def twice():
    metric = Metric()
    metric.update(1)
    metric.update(2)
class Evaluator:
    def run(self, model, epoch, x):
        y = model(x)
        if epoch % 2: self.preds.append(y)
        self.preds.append(model(x).detach())
def both():
    evaluator = Evaluator()
    evaluator.run(1, 2, 3)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return str(path)


def test_the_call_that_gives(file: str) -> None:
    stored = SourceLine(file, 3, "update")
    found = calling_line(stored, StoreTarget(file, "metric", first_line=11))
    assert found == SourceLine(file, 11, "main")


def test_a_method_that_makes_what_it_keeps_is_itself_the_place(file: str) -> None:
    stored = SourceLine(file, 6, "evaluate")
    assert calling_line(stored, StoreTarget(file, "metric", first_line=11)) is None


@pytest.mark.parametrize("line", [19, 20])
def test_what_a_model_makes_of_what_was_given_is_made_there(file: str, line: int) -> None:
    caller = StoreTarget(file, "evaluator", first_line=23)
    assert calling_line(SourceLine(file, line, "run"), caller) is None


def test_several_calls_or_none(file: str) -> None:
    stored = SourceLine(file, 3, "update")
    assert calling_line(stored, StoreTarget(file, "metric", first_line=14)) is None
    assert calling_line(stored, StoreTarget(file, "other", first_line=11)) is None
    assert calling_line(stored, StoreTarget("gone.py", "metric")) is None
    assert calling_line(SourceLine("gone.py", 3, "update"), StoreTarget(file, "metric")) is None

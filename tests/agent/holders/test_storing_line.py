"""The statement that stores into a name is found in the source, if it is the only one."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from vramscope.holders import storing_line as module
from vramscope.holders.holder import HolderFound, SourceLine, StoreTarget
from vramscope.holders.storing_line import find_storing_lines, storing_line

SOURCE = textwrap.dedent("""
    seen = []
    class Metric:
        rows = {}
        def __init__(self):
            self.preds, self.grid = [], None
            self.total = 0
            self.twice = []
        def update(self, p):
            self.preds.append(p)
            self.rows.setdefault("a", []).append(p)
            self.grid = p * 2
            self.total += p
            self.twice.append(p)
            self.twice.extend([p, p])
    class Other:
        def __init__(self):
            self.preds = []
            self.preds.append(1)
    def main():
        kept, state = [], {}
        total = 0
        kept.append(1)
        state["x"] = 1
        total = total + 1
        out, total2 = f(1), g()
        out, h = gru(1, h)
        seen.append(kept)
        def inner(t):
            closed = kept
            kept2.add(t)
        kept2 = set()
        setattr(main, "mark", kept)
""")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return str(path)


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("options", "statement", "function"),
    [
        (
            {"name": "preds", "is_attribute": True, "class_name": "Metric"},
            "self.preds.append(p)",
            "update",
        ),
        (
            {"name": "rows", "is_attribute": True, "class_name": "Metric"},
            "self.rows.setdefault",
            "update",
        ),
        (
            {"name": "total", "is_attribute": True, "class_name": "Metric"},
            "self.total += p",
            "update",
        ),
        (
            {"name": "grid", "is_attribute": True, "class_name": "Metric", "is_single": True},
            "self.grid = p",
            "update",
        ),
        ({"name": "mark", "is_attribute": True}, "setattr(main", "main"),
        ({"name": "kept", "first_line": "def main"}, "kept.append(1)", "main"),
        ({"name": "state", "first_line": "def main"}, 'state["x"] = 1', "main"),
        ({"name": "total", "first_line": "def main"}, "total = total + 1", "main"),
        ({"name": "h", "first_line": "def main"}, "out, h = gru(1, h)", "main"),
        ({"name": "kept2", "first_line": "def inner"}, "kept2.add(t)", "inner"),
        ({"name": "seen"}, "seen.append(kept)", "main"),
    ],
)
def test_the_statement(file: str, options: dict[str, Any], statement: str, function: str) -> None:
    first = options.pop("first_line", None)
    target = StoreTarget(file, first_line=line_of(first) if first else 0, **options)
    assert storing_line(target) == SourceLine(file, line_of(statement), function)


@pytest.mark.parametrize(
    "target",
    [
        {"name": "twice", "is_attribute": True, "class_name": "Metric"},
        {"name": "nowhere", "is_attribute": True},
        {"name": "out", "first_line": 1},
        {"name": "grid", "is_attribute": True, "class_name": "Metric"},
    ],
)
def test_none_where_there_are_several_or_none(file: str, target: dict[str, Any]) -> None:
    assert storing_line(StoreTarget(file, **target)) is None


def test_sources_that_say_nothing(tmp_path: Path) -> None:
    for name in (str(tmp_path / "gone.py"), "<input>", module.__file__):
        assert storing_line(StoreTarget(name, "kept")) is None


def test_the_first_target_that_is_found_counts(file: str) -> None:
    targets = [StoreTarget(file, "nowhere"), StoreTarget(file, "seen")]
    holder = HolderFound("garbage", targets=targets)
    find_storing_lines([holder])
    assert holder.stored_at == SourceLine(file, line_of("seen.append"), "main")
    assert holder.targets == []

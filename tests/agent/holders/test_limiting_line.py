"""A container that is limited where it is filled is told from one that only could be emptied."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from vramscope.holders.holder import HolderFound, SourceLine, StoreTarget
from vramscope.holders.storing_line import find_storing_lines

HEAD = "def fill(x):\n    kept.append(x)\n"


def found(folder: Path, source: str, **target: Any) -> HolderFound:
    file = folder / "job.py"
    file.write_text(source)
    holder = HolderFound("global", ["kept", "list of 3"])
    holder.targets = [structs.replace(StoreTarget(str(file), "kept"), **target)]
    find_storing_lines([holder])
    return holder


@pytest.mark.parametrize(
    "limit",
    [
        "if len(kept) > 100: kept.pop(0)",
        "kept.popleft()",
        "while 100 <= len(kept): kept.pop()",
        "del kept[0]",
        "del kept[:-100]",
        "kept = kept[-100:]",
        "if len(kept[0]) < SIZE: return",
    ],
)
def test_a_line_beside_it_that_limits_it(tmp_path: Path, limit: str) -> None:
    holder = found(tmp_path, f"{HEAD}    {limit}\n")
    assert holder.stored_at is not None
    assert holder.limited_at is not None
    assert (holder.limited_at.line, holder.limited_at.function) == (3, "fill")


@pytest.mark.parametrize(
    "other",
    [
        "kept.clear()",  # it may never come to it
        "kept = []",
        "if len(kept) % 100 == 0: print(len(kept))",
        "if len(other) > 100: other.pop()",
        "first = kept[0]",
        "total = len(kept) + 1",
    ],
)
def test_other_lines_limit_nothing(tmp_path: Path, other: str) -> None:
    assert found(tmp_path, f"{HEAD}    {other}\n").limited_at is None


def test_what_another_function_does_may_never_be_done(tmp_path: Path) -> None:
    assert found(tmp_path, f"{HEAD}def shrink():\n    kept.pop()\n").limited_at is None


def test_a_ring_that_is_filled_by_two_lines(tmp_path: Path) -> None:
    source = textwrap.dedent("""
        class Ring:
            def push(self, x):
                if len(self.rows) < self.most:
                    self.rows.append(None)
                self.rows[self.at] = x
    """)
    holder = found(tmp_path, source, name="rows", is_attribute=True, class_name="Ring")
    assert holder.stored_at is None
    assert holder.limited_at == SourceLine(str(tmp_path / "job.py"), 4, "push")


def test_in_a_script_it_may_be_anywhere(tmp_path: Path) -> None:
    source = "for x in data:\n    kept.append(x)\n    if len(kept) > 9:\n        kept.pop(0)\n"
    holder = found(tmp_path, source)
    assert holder.limited_at is not None
    assert holder.limited_at.line == 3

"""Sources are read once, within bounds, and give their statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from vramscope.holders import source_trees
from vramscope.holders.source_trees import functions_around, source_tree, statements_within

SOURCE = """\
first = 1
class C:
    second = 2
    def method(self):
        third = 3
        def inner():
            fourth = 4
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(source_trees, "_trees", {})
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return str(path)


def test_statements_with_their_functions(file: str) -> None:
    tree = source_tree(file)
    assert tree is not None
    found = {statement.lineno: name for statement, name in statements_within(tree)}
    assert (found[1], found[3], found[5], found[7]) == ("<module>", "<module>", "method", "inner")
    around = functions_around(tree, 7)
    assert [each.name for each in around] == ["inner", "method"]
    assert functions_around(tree, 1) == []
    assert {s.lineno for s, _ in statements_within(around[0])} == {7}


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_trees, "_trees", {})
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")
    long = tmp_path / "long.py"
    long.write_text("a = 1\n" * 3)
    monkeypatch.setattr(source_trees, "MAX_LINES", 2)
    for name in (str(broken), str(long), str(tmp_path / "gone.py"), "<input>"):
        assert source_tree(name) is None


def test_no_more_are_kept_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_trees, "MAX_TREES", 2)
    monkeypatch.setattr(source_trees, "_trees", {})
    for number in range(5):
        path = tmp_path / f"{number}.py"
        path.write_text("a = 1\n")
        assert source_tree(str(path)) is not None
    assert len(source_trees._trees) <= 2


def test_a_file_is_read_once(file: str) -> None:
    tree = source_tree(file)
    Path(file).write_text("other = 1\n")
    assert source_tree(file) is tree

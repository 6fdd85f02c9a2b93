"""A function is followed from the import of its module on, and is as before in the end."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope.steps.late_patch import LatePatch


@pytest.fixture
def module_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "late_function.py").write_text("def double(value):\n    return 2 * value\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "late_function"
    sys.modules.pop("late_function", None)


def patch_of(module: str, seen: list[str], name: str = "double") -> LatePatch:
    return LatePatch(
        module,
        name,
        lambda first: seen.append(f"before {first}"),
        lambda first, _raised: seen.append(f"after {first}"),
        "test",
    )


def test_before_and_after_the_import(module_name: str) -> None:
    seen: list[str] = []
    patch = patch_of(module_name, seen)
    patch.install()
    module = importlib.import_module(module_name)
    original = module.double.__wrapped__
    assert module.double(4) == 8
    assert seen == ["before 4", "after 4"]
    patch.remove()
    assert module.double is original
    assert not patch.is_installed


def test_removed_before_the_import_it_never_comes(module_name: str) -> None:
    seen: list[str] = []
    patch = patch_of(module_name, seen)
    patch.install()
    patch.remove()
    assert importlib.import_module(module_name).double(4) == 8
    assert not seen


def test_a_function_that_is_not_there_is_not_followed(module_name: str) -> None:
    patch = patch_of(module_name, [], "triple")
    patch.install()
    importlib.import_module(module_name)
    assert not patch.is_installed
    patch.forget_after_fork()
    patch.remove()


def test_in_a_forked_child_it_only_passes_on(module_name: str) -> None:
    seen: list[str] = []
    patch = patch_of(module_name, seen)
    patch.install()
    module = importlib.import_module(module_name)
    patch.forget_after_fork()
    assert module.double(4) == 8
    assert not seen
    patch.remove()

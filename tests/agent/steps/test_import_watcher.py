"""A module's import is noticed on the importing thread, and changes nothing for the module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope.steps.import_watcher import ImportWatcher, is_imported


@pytest.fixture
def module_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "late_module.py").write_text("value = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "late_module"
    sys.modules.pop("late_module", None)


def test_it_calls_back_once_when_the_module_has_been_executed(module_name: str) -> None:
    seen: list[tuple[int, int]] = []
    watcher = ImportWatcher(
        module_name,
        lambda: seen.append((sys.modules[module_name].value, threading.get_ident())),
    )
    watcher.install()
    assert not seen
    module = importlib.import_module(module_name)
    assert seen == [(7, threading.get_ident())]
    assert watcher not in sys.meta_path
    importlib.reload(module)
    assert len(seen) == 1


def test_the_module_has_the_loader_that_it_would_have_without_us(module_name: str) -> None:
    plain = importlib.import_module(module_name)
    expected = type(plain.__spec__.loader) if plain.__spec__ else None
    del sys.modules[module_name]
    watcher = ImportWatcher(module_name, lambda: None)
    watcher.install()
    watched = importlib.import_module(module_name)
    assert watched.__spec__ is not None
    assert type(watched.__spec__.loader) is expected
    assert type(watched.__loader__) is expected


def test_a_module_that_is_there_is_called_back_at_once(module_name: str) -> None:
    importlib.import_module(module_name)
    seen: list[bool] = []
    watcher = ImportWatcher(module_name, lambda: seen.append(True))
    watcher.install()
    assert seen == [True]
    assert watcher not in sys.meta_path


def test_removed_it_sees_nothing(module_name: str) -> None:
    seen: list[bool] = []
    watcher = ImportWatcher(module_name, lambda: seen.append(True))
    watcher.install()
    watcher.remove()
    importlib.import_module(module_name)
    assert not seen
    assert watcher not in sys.meta_path


def test_an_import_that_fails_fails_as_without_us(tmp_path: Path, module_name: str) -> None:
    (tmp_path / f"{module_name}.py").write_text("raise RuntimeError('broken')\n")
    watcher = ImportWatcher(module_name, lambda: pytest.fail("not imported"))
    watcher.install()
    with pytest.raises(RuntimeError, match="broken"):
        importlib.import_module(module_name)
    watcher.remove()


def test_a_missing_module_stays_missing() -> None:
    watcher = ImportWatcher("no_such_module_anywhere", lambda: pytest.fail("not imported"))
    watcher.install()
    assert importlib.util.find_spec("no_such_module_anywhere") is None
    watcher.remove()


@pytest.mark.expects_guarded_errors
def test_a_callback_that_raises_does_not_break_the_import(module_name: str) -> None:
    def fail() -> None:
        raise ValueError("ours")

    ImportWatcher(module_name, fail).install()
    assert importlib.import_module(module_name).value == 7


def test_a_half_imported_module_is_not_imported() -> None:
    assert is_imported("sys")
    assert not is_imported("no_such_module_anywhere")

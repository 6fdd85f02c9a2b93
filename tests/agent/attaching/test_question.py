from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from vramscope import __version__
from vramscope.attaching import question


def ask(*flags: str, cwd: Path | None = None, path: str | None = None) -> dict[str, Any]:
    environment = {**os.environ, **({} if path is None else {"PYTHONPATH": path})}
    ended = subprocess.run(
        [sys.executable, *flags, "-c", Path(question.__file__).read_text()],
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
        env=environment,
        timeout=60,
    )
    answer: dict[str, Any] = json.loads(ended.stdout)
    assert answer["executable"] == sys.executable
    assert answer["python"] == list(sys.version_info[:2])
    return answer


def test_the_version_and_the_folders_are_told() -> None:
    answer = ask()
    assert answer["version"] == __version__
    modules = [__import__(name) for name in ("vramscope", "msgspec", "websockets")]
    for module in modules:
        assert str(Path(str(module.__file__)).parents[1]) in answer["folders"]


def test_without_vramscope_that_is_told_apart_from_a_broken_one(tmp_path: Path) -> None:
    answer = ask("-I", "-S")
    assert "version" not in answer
    assert answer["is_missing"]
    assert not answer["has_pip"]
    (tmp_path / "vramscope").mkdir()
    (tmp_path / "vramscope/__init__.py").write_text("import a_module_that_is_not_there")
    broken = ask("-S", path=str(tmp_path))
    assert not broken["is_missing"]
    assert "a_module_that_is_not_there" in broken["error"]


def test_the_working_folder_is_not_imported_from(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('of the working folder')")
    assert ask(cwd=tmp_path)["version"] == __version__

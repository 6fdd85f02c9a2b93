"""Whether real processes can be reached, asked as root and as somebody with fewer rights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.job_process import child_environment
from vramscope.processes.obstacle import Facts
from vramscope.processes.permission import read_facts, why_not_reachable
from vramscope.processes.process import read_process

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")

ADA, BOB = 65533, 65534

ASKS = """
import ctypes, json, os, sys
from vramscope.processes.permission import read_facts, why_not_reachable
from vramscope.processes.process import read_process
uid, pid = map(int, sys.argv[1:])
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
obstacle = why_not_reachable(read_process(pid))
assert read_facts(read_process(pid)).opens is (obstacle is None)
print(json.dumps(None if obstacle is None else [obstacle.kind, obstacle.reason, obstacle.fix]))
"""

WAITS = """
import ctypes, os, sys
uid, dumpable = map(int, sys.argv[1:])
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
ctypes.CDLL(None).prctl(4, dumpable, 0, 0, 0)  # PR_SET_DUMPABLE
print("up", flush=True)
sys.stdin.read()
"""

TRACES = """
import ctypes, os, sys
ptrace = ctypes.CDLL(None).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
assert ptrace(0x4206, int(sys.argv[1]), None, None) == 0  # PTRACE_SEIZE: stops nothing
print("up", flush=True)
sys.stdin.read()
"""

FILTERED = """
import ctypes, errno, json, struct, sys
from vramscope.processes.permission import why_not_reachable
from vramscope.processes.process import read_process
pid, ptrace, forbids = map(int, sys.argv[1:])
ALLOW, REFUSE = 0x7FFF0000, 0x50001  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO with EPERM
library = ctypes.CDLL(None, use_errno=True)
is_ptrace = [(0x20, 0, 0, 0), (0x15, 0, 1, ptrace)]
steps = [*is_ptrace, (0x06, 0, 0, REFUSE if forbids else ALLOW), (0x06, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
program = struct.pack("@HxxxxxxP", len(steps), ctypes.addressof(code))
assert library.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert library.prctl(22, 2, program) == 0  # PR_SET_SECCOMP
obstacle = why_not_reachable(read_process(pid))
print(json.dumps(None if obstacle is None else [obstacle.kind, obstacle.reason, obstacle.fix]))
"""
PTRACE_NUMBER = {"x86_64": 101, "aarch64": 117}


@contextmanager
def running(code: str, *arguments: int) -> Iterator[int]:
    """A process that runs ``code`` and has said that it is ready."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process.pid
        process.communicate()


def answer(code: str, *arguments: int) -> Any:
    """What a process of its own finds: ``None``, or kind, reason and fix."""
    ran = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=child_environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


def test_root_reaches_everybody() -> None:
    with running(WAITS, ADA, 1) as pid:
        assert why_not_reachable(read_process(pid)) is None


def test_a_user_reaches_its_own_processes_and_no_others() -> None:
    with running(WAITS, ADA, 1) as pid:
        if read_facts(read_process(pid)).ptrace_scope not in (None, 0):
            pytest.skip("Yama forbids it on this machine")
        assert answer(ASKS, ADA, pid) is None
        kind, reason, fix = answer(ASKS, BOB, pid)
    assert kind == "uid"
    assert f"uid {ADA}" in reason
    assert f"uid {BOB}" in reason
    assert f"-m vramscope attach {pid}" in fix or "--cap-add" in fix


def test_a_process_that_is_not_dumpable_is_out_of_reach() -> None:
    with running(WAITS, ADA, 0) as pid:
        kind, reason, _ = answer(ASKS, ADA, pid)
    assert kind == "dumpable"
    assert "not dumpable" in reason


def test_a_tracer_is_found_and_named() -> None:
    with running(WAITS, ADA, 1) as pid, running(TRACES, pid) as tracer:
        obstacle = why_not_reachable(read_process(pid))
        assert obstacle is not None
        assert obstacle.kind == "traced"
        assert f"(PID {tracer})" in obstacle.reason
        assert why_not_reachable(read_process(pid), method="remote_exec") is None


def test_a_filter_that_forbids_ptrace_is_found_without_touching_anybody() -> None:
    number = PTRACE_NUMBER.get(os.uname().machine)
    if number is None:
        pytest.skip("the number of the system call is not known here")
    with running(WAITS, ADA, 1) as pid:
        kind, _, fix = answer(FILTERED, pid, number, 1)
        assert answer(FILTERED, pid, number, 0) is None
    assert kind == "seccomp"
    assert "SYS_PTRACE" in fix


def test_the_kernel_decides_for_itself_what_this_process_may() -> None:
    own = why_not_reachable(read_process(os.getpid()))
    assert own is not None
    assert own.kind == "self"


def test_children_and_their_children_are_descendants() -> None:
    with running(WAITS, ADA, 1) as pid:
        facts = read_facts(read_process(pid))
        assert isinstance(facts, Facts)
        assert facts.is_descendant
        assert facts.opens is True
        assert facts.is_dumpable is True
    assert not read_facts(read_process(os.getppid())).is_descendant


def test_the_command_for_root_is_complete() -> None:
    with running(WAITS, ADA, 1) as pid:
        words = read_facts(read_process(pid), "detach").command.split()
        assert words[0] == sys.executable
        assert words[-3:] == ["vramscope", "detach", str(pid)]

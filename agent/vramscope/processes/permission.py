"""Whether this process may reach into another one, asked without touching the other one."""

from __future__ import annotations

import ctypes
import errno
import os
import shlex
import sys
from pathlib import Path
from typing import Final

from vramscope.processes.obstacle import Facts, Method, Obstacle, obstacle
from vramscope.processes.proc_files import NoSuchProcess, read_proc
from vramscope.processes.process import Process, read_stat

_PTRACE_CONT: Final = 7
_NO_PID: Final = 2**31 - 1  # above every possible pid
_SECCOMP_FILTER: Final = b"2"
_INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
_ALL_USERS: Final = [b"0", b"0", b"4294967295"]
_PTRACE_SCOPE: Final = "/proc/sys/kernel/yama/ptrace_scope"


def why_not_reachable(
    process: Process, *, method: Method = "pending_call", command: str = "attach"
) -> Obstacle | None:
    """What keeps us from attaching to ``process``, ``None`` if nothing does.

    The kernel itself is asked: opening ``/proc/PID/mem`` needs exactly the right to trace, and
    stops nothing. The rules only explain what it answered.

    Args:
        process: as :func:`~vramscope.processes.process.read_process` gives it.
        method: how it would be reached.
        command: subcommand that would be run again with more rights.
    """
    return obstacle(process, read_facts(process, command), method)


def read_facts(process: Process, command: str = "attach") -> Facts:
    """What this process may do, and what ``process`` lets others do."""
    own = _own_status()
    words = [sys.executable or "python3", "-m", "vramscope", command, str(process.pid)]
    return Facts(
        opens=_opens_memory(process.pid),
        pid=os.getpid(),
        uid=os.geteuid(),
        gid=os.getegid(),
        capabilities=int(own.get(b"CapEff", b"0"), 16),
        is_ptrace_filtered=own.get(b"Seccomp") == _SECCOMP_FILTER and _is_ptrace_refused(),
        ptrace_scope=_ptrace_scope(),
        is_descendant=_is_descendant(process),
        is_dumpable=_is_dumpable(process),
        security_label=_security_label(process.pid),
        in_container=is_in_container(),
        in_user_namespace=_is_in_user_namespace(),
        command=shlex.join(words),
    )


def _opens_memory(pid: int) -> bool | None:
    try:
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC))
    except PermissionError:
        return False
    except OSError:
        return None
    return True


def _own_status() -> dict[bytes, bytes]:
    lines = Path("/proc/self/status").read_bytes().splitlines()
    parts = (line.partition(b":") for line in lines)
    return {key: value.strip() for key, _, value in parts}


def _is_ptrace_refused() -> bool:
    """Whether ptrace is refused before the kernel even looks for the process."""
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    library.ptrace.restype = ctypes.c_long
    answer: int = library.ptrace(_PTRACE_CONT, _NO_PID, None, None)
    return answer == -1 and ctypes.get_errno() != errno.ESRCH


def _ptrace_scope() -> int | None:
    try:
        return int(Path(_PTRACE_SCOPE).read_bytes())
    except (OSError, ValueError):
        return None


def _is_descendant(process: Process) -> bool:
    own, parent = os.getpid(), process.ppid
    try:
        while parent > 1:
            if parent == own:
                return True
            parent = read_stat(parent).ppid
    except NoSuchProcess:
        return False
    return False


def _is_dumpable(process: Process) -> bool | None:
    """The files of a process that is not dumpable belong to root, whatever its own user is."""
    if process.uids.effective == 0:
        return None
    try:
        return os.stat(f"/proc/{process.pid}/stat").st_uid == process.uids.effective
    except OSError:
        return None


def _security_label(pid: int) -> str:
    try:
        label = (read_proc(pid, "attr/current") or b"").rstrip(b"\0\n").decode(errors="replace")
    except NoSuchProcess:
        return ""
    return "" if label == "unconfined" or not label.isprintable() else label


def is_in_container() -> bool:
    """Whether the pids here are not those of the machine, and of its driver."""
    try:
        return os.readlink("/proc/self/ns/pid") != _INITIAL_PID_NAMESPACE
    except OSError:
        return False


def _is_in_user_namespace() -> bool:
    try:
        return Path("/proc/self/uid_map").read_bytes().split() != _ALL_USERS
    except OSError:
        return False

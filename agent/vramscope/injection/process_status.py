"""The few words of /proc/PID that matter before a process is stopped."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class ProcessStatus:
    """A process at one moment.

    Attributes:
        state: one letter, as ps shows it, of the main thread.
        parent: pid.
        started_ticks: field 22 of /proc/PID/stat.
        tracer: pid, 0 if nobody traces the main thread.
        innermost_pid: the one that it has in its own pid namespace.
        shadow_stack: whether the processor guards its return addresses.
        filtered: whether it may make only some system calls (seccomp).
        executable: as it sees it itself; empty if that cannot be read.
    """

    pid: int
    state: str
    parent: int
    started_ticks: int
    tracer: int
    innermost_pid: int
    shadow_stack: bool
    filtered: bool
    executable: str


def read_process_status(pid: int) -> ProcessStatus:
    """What /proc says.

    Raises:
        OSError: there is no such process.
    """
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="surrogateescape") as file:
        # The name, in parentheses, may hold spaces and parentheses itself.
        state, parent, *rest = file.read().rpartition(")")[2].split()
    lines: dict[str, str] = {}
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            name, _, value = line.partition(":")
            lines[name] = value.strip()
    return ProcessStatus(
        pid=pid,
        state=state,
        parent=int(parent),
        started_ticks=int(rest[17]),
        tracer=int(lines.get("TracerPid", "0")),
        innermost_pid=int(lines.get("NSpid", str(pid)).split()[-1]),
        shadow_stack="shstk" in lines.get("x86_Thread_features", "").split(),
        filtered=lines.get("Seccomp", "0") != "0",
        executable=_executable(pid),
    )


def name_of_process(pid: int) -> str:
    """Its name (comm), empty if it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _executable(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ""

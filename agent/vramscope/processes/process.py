"""One process as /proc describes it: who, since when, under which names, and who traces it."""

from __future__ import annotations

import os
import pwd
import time
from typing import Final, NamedTuple

from msgspec import Struct

from vramscope.processes.command_line import shown_command, split_command_line
from vramscope.processes.proc_files import NoSuchProcess as NoSuchProcess
from vramscope.processes.proc_files import read_proc, read_proc_link

_KERNEL_THREAD: Final = 0x00200000  # PF_KTHREAD in linux/sched.h
_DELETED: Final = " (deleted)"
_NAMESPACES: Final = ("pid", "mnt", "net", "user")


class Ids(NamedTuple):
    """User or group ids of a process, as numbers of this user namespace."""

    real: int
    effective: int
    saved: int


class Process(Struct, frozen=True, kw_only=True):
    """A process at one moment; what this user may not read is ``None``.

    ``pid`` and ``start_ticks`` together name one process for as long as the machine runs.
    ``argv`` may hold secrets: what may be shown is ``command``.
    """

    pid: int
    ppid: int
    ns_pid: int
    start_ticks: int
    started_ns: int
    state: str
    name: str
    uids: Ids
    gids: Ids
    command: str
    argv: tuple[str, ...]
    exe: str | None
    exe_deleted: bool
    tracer_pid: int
    tracer_name: str
    is_kernel_thread: bool
    same_pid_namespace: bool | None
    same_mount_namespace: bool | None
    same_net_namespace: bool | None
    same_user_namespace: bool | None
    same_root: bool | None
    permitted_capabilities: int

    @property
    def user(self) -> str:
        """Name of the user that the process runs as, or the number where there is no name."""
        return user_name(self.uids.effective)

    @property
    def root(self) -> str:
        """Where the files of the process lie: goes before every absolute path it names."""
        return f"/proc/{self.pid}/root"

    @property
    def container(self) -> bool:
        """Whether it has other pids or another root than we, as far as can be known."""
        return (
            self.same_pid_namespace is False or self.same_root is False or self.ns_pid != self.pid
        )


class Stat(NamedTuple):
    """What is needed of ``/proc/PID/stat``, which everybody may read."""

    name: str
    state: str
    ppid: int
    flags: int
    start_ticks: int


def read_process(pid: int) -> Process:
    """Describe process ``pid``.

    Raises:
        NoSuchProcess: it has ended, is hidden, or the number is that of a thread.
    """
    try:
        stat = read_stat(pid)
    except NoSuchProcess:
        if _is_hidden(pid):
            message = f"process {pid} is hidden from this user (/proc is mounted with hidepid)"
            raise NoSuchProcess(pid, message) from None
        raise
    status = _status(pid)
    thread_group = int(status.get("Tgid", [str(pid)])[0])
    if thread_group != pid:
        raise NoSuchProcess(pid, f"{pid} is a thread of process {thread_group}, not a process")
    argv = split_command_line(read_proc(pid, "cmdline") or b"")
    exe = read_proc_link(pid, "exe")
    same = {kind: _same_link(pid, f"ns/{kind}") for kind in _NAMESPACES}
    tracer_pid = int(status.get("TracerPid", ["0"])[0])
    return Process(
        pid=pid,
        ppid=stat.ppid,
        ns_pid=int(status.get("NSpid", [str(pid)])[-1]),
        start_ticks=stat.start_ticks,
        started_ns=started_ns(stat.start_ticks),
        state=stat.state,
        name=stat.name,
        uids=_ids(status, "Uid"),
        gids=_ids(status, "Gid"),
        command=shown_command(argv) or stat.name,
        argv=argv,
        exe=None if exe is None else exe.removesuffix(_DELETED),
        exe_deleted=exe is not None and exe.endswith(_DELETED),
        tracer_pid=tracer_pid,
        tracer_name=_name(tracer_pid),
        is_kernel_thread=bool(stat.flags & _KERNEL_THREAD),
        same_pid_namespace=same["pid"],
        same_mount_namespace=same["mnt"],
        same_net_namespace=same["net"],
        same_user_namespace=same["user"],
        same_root=_same_root(pid),
        permitted_capabilities=int(status.get("CapPrm", ["0"])[0], 16),
    )


def is_same_life(process: Process) -> bool:
    """Whether the process still runs: the number may have gone to another one meanwhile."""
    try:
        stat = read_stat(process.pid)
    except NoSuchProcess:
        return False
    return stat.start_ticks == process.start_ticks and stat.state not in "ZX"


def read_stat(pid: int) -> Stat:
    """Read name, state, parent, flags and start.

    Raises:
        NoSuchProcess: it has ended.
    """
    raw = read_proc(pid, "stat")
    if raw is None:
        raise NoSuchProcess(pid)
    # The name may hold spaces and brackets: fields are counted from the last bracket on.
    head, _, tail = raw.decode(errors="replace").rpartition(")")
    fields = tail.split()
    return Stat(
        name=_clean(head.partition("(")[2]),
        state=fields[0],
        ppid=int(fields[1]),
        flags=int(fields[6]),
        start_ticks=int(fields[19]),
    )


def started_ns(start_ticks: int) -> int:
    """When a process started, in nanoseconds since the epoch, from its clock ticks since boot."""
    booted_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return booted_ns + start_ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def user_name(uid: int) -> str:
    """Name of a user, or the number as text where no user database knows it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _is_hidden(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # sends nothing; only asks whether there is anybody
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _status(pid: int) -> dict[str, list[str]]:
    raw = read_proc(pid, "status")
    if raw is None:
        raise NoSuchProcess(pid)
    lines = (line.partition(":") for line in raw.decode(errors="replace").splitlines())
    return {key: words for key, _, value in lines if (words := value.split())}


def _ids(status: dict[str, list[str]], key: str) -> Ids:
    real, effective, saved = (int(number) for number in status[key][:3])
    return Ids(real, effective, saved)


def _same_link(pid: int, name: str) -> bool | None:
    theirs = read_proc_link(pid, name)
    return None if theirs is None else theirs == read_proc_link(os.getpid(), name)


def _same_root(pid: int) -> bool | None:
    try:
        theirs = os.stat(f"/proc/{pid}/root/")
    except OSError:
        return None
    ours = os.stat("/")
    return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)


def _name(pid: int) -> str:
    if pid == 0:
        return ""
    try:
        return read_stat(pid).name
    except NoSuchProcess:
        return ""


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)

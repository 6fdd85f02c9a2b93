"""The processes on the device by name: whose memory it is that is not this process's."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import msgspec

from vramscope.collectors.process_listing import ProcessListing
from vramscope.processes.command_line import name_of, split_command_line
from vramscope.processes.proc_files import NoSuchProcess, read_proc
from vramscope.processes.process import read_stat
from vramscope.sampling.clock import Clock
from vramscope.size_text import size_text
from vramscope_protocol.account import ProcessMemory
from vramscope_protocol.messages import Event

EVENT_INTERVAL_NS: Final = 10_000_000_000
CHANGE_BYTES: Final = 256 << 20
"""A change of another process by this much is told as an event."""

_MAX_COMMAND: Final = 80
MAX_PROCESSES: Final = 64


class DeviceProcesses:
    """Names the processes that the driver lists. Sampler thread.

    Args:
        listing: the driver's last list.
        clock: for the rate of events.
        emit: takes an event when processes come and go, or grow by much.
        current_step: steps finished so far.
    """

    def __init__(
        self,
        listing: Callable[[], ProcessListing],
        *,
        clock: Clock,
        emit: Callable[[Event], object],
        current_step: Callable[[], int],
    ) -> None:
        self._listing = listing
        self._clock = clock
        self._emit = emit
        self._current_step = current_step
        self._commands: dict[int, str] = {}
        self._told: dict[int, int | None] | None = None
        self._due_ns = 0

    def read(self) -> list[ProcessMemory]:
        """The processes, most memory first; none where they cannot be seen."""
        listed = self._listing().processes
        if listed is None:
            return []
        # One that computes and draws is listed twice.
        sizes: dict[int, int | None] = {}
        for pid, size_bytes in listed:
            before = sizes.get(pid, 0)
            sizes[pid] = None if None in (before, size_bytes) else (before or 0) + (size_bytes or 0)
        self._commands = {pid: self._command(pid) for pid in sizes}
        found = [ProcessMemory(pid, self._commands[pid], size) for pid, size in sizes.items()]
        found.sort(key=lambda each: (-(each.bytes or 0), each.pid))
        self._tell(sizes, found[:MAX_PROCESSES])
        return found[:MAX_PROCESSES]

    def _command(self, pid: int) -> str:
        known = self._commands.get(pid)
        return command_of(pid) if known is None else known

    def _tell(self, sizes: dict[int, int | None], found: list[ProcessMemory]) -> None:
        others = {pid: size for pid, size in sizes.items() if pid != os.getpid()}
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._due_ns or not _has_changed(self._told or {}, others):
            return
        self._due_ns = now_ns + EVENT_INTERVAL_NS
        self._told = others
        count = "one other process" if len(others) == 1 else f"{len(others)} other processes"
        text = f"{count} on the device" if others else "no other process on the device any more"
        if len(others) == 1:
            (other,) = (each for each in found if each.pid in others)
            size = "" if other.bytes is None else f", {size_text(other.bytes)}"
            text = f"{text}: {other.command or 'unknown'} (pid {other.pid}{size})"
        listed = [each for each in found if each.pid in others]
        data: dict[str, object] = {"processes": msgspec.to_builtins(listed)}
        self._emit(Event(0, self._clock.time_ns(), "processes", self._current_step(), text, data))


def command_of(pid: int) -> str:
    """Name of what a process runs, without its folder and its arguments; "" if not known.

    Another rank of this job, started by the same launcher, is called that.
    """
    try:
        words = split_command_line(read_proc(pid, "cmdline") or b"")
        name = name_of(words) or read_stat(pid).name
        name = name.encode(errors="replace").decode()[:_MAX_COMMAND]
        if pid == os.getpid():
            return name
        stat = read_stat(pid)
        if stat.ppid != os.getppid() or stat.ppid <= 1 or name != command_of(os.getpid()):
            return name
        rank = _rank(read_proc(pid, "environ") or b"")
    except NoSuchProcess:
        return ""
    return f"{name}, rank {rank} of this job" if rank else f"{name}, of this job"


def _rank(environ: bytes) -> str:
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == b"RANK" and value.isdigit():
            return value.decode()
    return ""


def _has_changed(before: dict[int, int | None], now: dict[int, int | None]) -> bool:
    if before.keys() != now.keys():
        return True
    return any(abs((size or 0) - (before[pid] or 0)) >= CHANGE_BYTES for pid, size in now.items())

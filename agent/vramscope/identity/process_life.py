"""One life of one process: what no other process of this machine ever had or will have."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

_MAX_ANCESTORS: Final = 32
_NS: Final = 1_000_000_000


class Ancestor(Struct, frozen=True):
    """A process above this one, as far as /proc tells."""

    pid: int
    arguments: tuple[str, ...]
    environ: frozenset[str]
    """``NAME=value`` as it was when the process started."""


def life_of(pid: int) -> str:
    """Boot, pid namespace, number and start of a process; the same whoever of them asks.

    Without /proc it is only the number, which may come back.
    """
    ticks = _start_ticks(pid)
    if ticks is None:
        return str(pid)
    boot = _text("/proc/sys/kernel/random/boot_id").strip()
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        namespace = 0
    return f"{boot}.{namespace}.{pid}.{ticks}"


def own_life() -> str:
    """Life of this process; where the kernel does not tell, something random that is kept."""
    pid = os.getpid()
    if _start_ticks(pid) is not None:
        return life_of(pid)
    if _made_up.get("pid") != str(pid):  # a forked child is another one
        _made_up.update(pid=str(pid), life=uuid.uuid4().hex)
    return _made_up["life"]


def short_name(life: str) -> str:
    """A life as 16 hex digits, for the wire and for file names."""
    return hashlib.sha256(life.encode()).hexdigest()[:16]


def started_ns(pid: int) -> int:
    """When a process started, ns since the epoch, good to about 10 ms; 0 if not known."""
    ticks = _start_ticks(pid)
    if ticks is None:
        return 0
    # Counted from the boot, sleep included, by a clock that nobody sets.
    age_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ticks * _NS // os.sysconf("SC_CLK_TCK")
    return time.time_ns() - age_ns


def ancestors() -> Iterator[Ancestor]:
    """The parent of this process, its parent and so on, as far up as may be read."""
    pid = os.getppid()
    for _ in range(_MAX_ANCESTORS):
        environ = _items(f"/proc/{pid}/environ")
        if pid <= 0 or not environ:
            return
        yield Ancestor(pid, tuple(_items(f"/proc/{pid}/cmdline")), frozenset(environ))
        fields = _stat_fields(pid)
        pid = int(fields[1]) if fields else 0


def child_count(pid: int) -> int:
    """How many child processes a process has now; 0 where the kernel does not tell."""
    with contextlib.suppress(OSError):
        tasks = os.listdir(f"/proc/{pid}/task")
        return sum(len(_text(f"/proc/{pid}/task/{task}/children").split()) for task in tasks)
    return 0


def start_environment() -> dict[str, str] | None:
    """The environment as it was when this process started; ``None`` where nobody knows any more.

    A program that shows another name in ``ps`` may have written that name over it.
    """
    items = [item.partition("=") for item in _items("/proc/self/environ")]
    found = {name: value for name, _, value in items}
    return found if "PATH" in found or "HOME" in found else None


_made_up: dict[str, str] = {}


def _start_ticks(pid: int) -> int | None:
    fields = _stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 else None


def _stat_fields(pid: int) -> list[str]:
    # The name may hold spaces and brackets: fields are counted from the last bracket on.
    return _text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _items(path: str) -> list[str]:
    return [item for item in _text(path).split("\0") if item]


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""

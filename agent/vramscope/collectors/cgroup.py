"""The memory limit of the control group that this process is in: a container's, or a job's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from vramscope.collectors.proc_text import ProcText
from vramscope_protocol.columns import UNKNOWN

REPEATED: Final = 29
"""Readings that take the group and its limit as they were: the list of mounts is long."""

_NO_LIMIT_V1: Final = 1 << 62
"""Version 1 says "no limit" with a number near 2^63, rounded to pages."""


class _Names(NamedTuple):
    limit: str
    used: str


_V2: Final = _Names("memory.max", "memory.current")
_V1: Final = _Names("memory.limit_in_bytes", "memory.usage_in_bytes")


class CgroupMemory(NamedTuple):
    """The lowest limit that holds for this process, and what counts against it."""

    limit_bytes: int = UNKNOWN
    used_bytes: int = UNKNOWN


class MemoryCgroup:
    """Finds the groups that this process is in, from its own up to the root that is visible.

    Args:
        files: reads small files.
        proc: where ``cgroup`` and ``mountinfo`` of the process are.
    """

    def __init__(self, files: ProcText, proc: str = "/proc/self") -> None:
        self._files = files
        self._proc = proc
        self._limit_bytes = UNKNOWN
        self._used_path = ""
        self._to_repeat = 0

    def read(self) -> CgroupMemory:
        """Limit and use; both unknown without a limit, or without control groups."""
        if self._to_repeat:
            self._to_repeat -= 1
        else:
            self._to_repeat = REPEATED
            self._find()
        if self._limit_bytes == UNKNOWN:
            return CgroupMemory()
        used_bytes = self._files.read_number(self._used_path)
        return CgroupMemory(self._limit_bytes, UNKNOWN if used_bytes is None else used_bytes)

    def _find(self) -> None:
        """Look the group up: a scheduler may move a process, or change what it may have."""
        self._limit_bytes, self._used_path = min(
            (
                (limit_bytes, f"{folder}/{names.used}")
                for limit_bytes, folder, names in self._limits()
            ),
            default=(UNKNOWN, ""),
        )

    def _limits(self) -> Iterator[tuple[int, str, _Names]]:
        place = self._place()
        if place is None:
            return
        mount, path, names = place
        while True:
            folder = os.path.normpath(f"{mount}/{path}")
            # A group without a limit says "max", which is no number; the root has no such file.
            limit_bytes = self._files.read_number(f"{folder}/{names.limit}")
            if limit_bytes is not None and limit_bytes < _NO_LIMIT_V1:
                yield limit_bytes, folder, names
            if path in ("", "/"):
                return
            path = path.rpartition("/")[0]

    def _place(self) -> tuple[str, str, _Names] | None:
        """Where the hierarchy of the memory controller is mounted, and our group below that."""
        text = self._files.read(f"{self._proc}/cgroup")
        mounts = self._mounts()
        if text is None:
            return None
        unified = None
        for line in text.decode(errors="replace").splitlines():
            _, controllers, path = [*line.split(":", 2), "", ""][:3]
            if "memory" in controllers.split(",") and "memory" in mounts:
                return *_below(mounts["memory"], path), _V1
            if not controllers:
                unified = path
        if unified is None or "" not in mounts:
            return None
        return *_below(mounts[""], unified), _V2

    def _mounts(self) -> dict[str, tuple[str, str]]:
        """Mount point and mounted root of version 2 (key "") and of version 1's memory."""
        found: dict[str, tuple[str, str]] = {}
        text = self._files.read(f"{self._proc}/mountinfo") or b""
        for line in text.decode(errors="replace").splitlines():
            left, _, right = line.partition(" - ")
            words, kind = left.split(), right.split()
            if len(words) < 5 or len(kind) < 3:
                continue
            if kind[0] == "cgroup2":
                found[""] = (words[4], words[3])
            elif kind[0] == "cgroup" and "memory" in kind[2].split(","):
                found["memory"] = (words[4], words[3])
        return found


def _below(mount: tuple[str, str], path: str) -> tuple[str, str]:
    """The path of a group below its mount point, which may show a part of the hierarchy only."""
    point, root = mount
    if root != "/" and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    elif root != "/" or path.startswith("/.."):
        path = "/"  # the group itself is not visible here: what is mounted is all that is known
    return point, path

"""What a process has mapped into its memory: libraries, devices, and where they lie."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from vramscope.processes.proc_files import read_proc

_PATH: Final = re.compile(rb"^[0-9a-f-]+ \S+ \S+ \S+ \S+ +(/[^\n]+)$", re.MULTILINE)
_VDSO: Final = b"[vdso]"
_DELETED: Final = b" (deleted)"


class MemoryMap(Struct, frozen=True):
    """The files that are mapped.

    Args:
        paths: as the process sees them, those that were deleted or replaced left out.
        deleted: those.
        layout: an address that is chosen at random whenever a program starts: processes that
            have it in common are forks of each other. "" where there is none.
    """

    paths: frozenset[str]
    deleted: frozenset[str]
    layout: str

    @property
    def all_paths(self) -> frozenset[str]:
        """Those that are there and those that were deleted."""
        return self.paths | self.deleted

    @property
    def uses_nvidia(self) -> bool:
        """Whether a device of NVIDIA is mapped, as CUDA does it when it comes up."""
        return any(path.startswith("/dev/nvidia") for path in self.paths)


def read_memory_map(pid: int) -> MemoryMap | None:
    """Read ``/proc/PID/maps``; ``None`` where this user may not.

    Raises:
        NoSuchProcess: the process has ended.
    """
    raw = read_proc(pid, "maps")
    return None if raw is None else parse_memory_map(raw)


def parse_memory_map(raw: bytes) -> MemoryMap:
    """Find the files in the text of ``/proc/PID/maps``."""
    paths = set(_PATH.findall(raw))
    deleted = {path for path in paths if path.endswith(_DELETED)}
    return MemoryMap(
        paths=frozenset(_text(path) for path in paths - deleted),
        deleted=frozenset(_text(path.removesuffix(_DELETED)) for path in deleted),
        layout=_start_of(raw, _VDSO),
    )


def _start_of(raw: bytes, name: bytes) -> str:
    """Address of the mapping ``name``, as text; "" if there is none."""
    end = raw.find(name)
    if end < 0:
        return ""
    return raw[raw.rfind(b"\n", 0, end) + 1 : end].partition(b"-")[0].decode()


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")

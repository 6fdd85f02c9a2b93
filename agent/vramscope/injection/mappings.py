"""What a process has mapped, from /proc/PID/maps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_DELETED: Final = " (deleted)"


@dataclass(frozen=True)
class Mapping:
    """One line of /proc/PID/maps.

    Attributes:
        path: as the process sees it; ``[stack]``, ``[vdso]`` and the like for the kernel's own,
            empty for anonymous memory. A trailing " (deleted)" is cut off.
        offset: of ``start`` in the file, in bytes.
    """

    start: int
    end: int
    permissions: str
    offset: int
    path: str

    @property
    def executable(self) -> bool:
        """Whether its bytes may be run and read."""
        return self.permissions.startswith("r-x")

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]


def read_mappings(pid: int) -> list[Mapping]:
    """All mappings of a process, by rising address.

    Raises:
        OSError: it is gone, or not ours to look into.
    """
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as lines:
        return parse_mappings(lines)


def parse_mappings(lines: Iterable[str]) -> list[Mapping]:
    """Mappings out of the lines of a maps file (proc_pid_maps(5))."""
    found: list[Mapping] = []
    for line in lines:
        fields = line.rstrip("\n").split(None, 5)
        start, _, end = fields[0].partition("-")
        path = fields[5] if len(fields) > 5 else ""
        found.append(
            Mapping(
                start=int(start, 16),
                end=int(end, 16),
                permissions=fields[1],
                offset=int(fields[2], 16),
                path=path.removesuffix(_DELETED),
            )
        )
    return found

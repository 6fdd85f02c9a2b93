"""Shared memory files: the file system that they lie on, and PyTorch's own among them."""

from __future__ import annotations

import os
import time
from typing import Final, NamedTuple

from vramscope.collectors.self_cost import ReleasedTime
from vramscope_protocol.columns import UNKNOWN

_FOLDER: Final = "/dev/shm"
_PREFIX: Final = "torch_"
_MAX_ENTRIES: Final = 2000
_BLOCK_BYTES: Final = 512


class SharedMemoryFiles(NamedTuple):
    """Use and size of the file system for shared memory, and PyTorch's files of this user."""

    used_bytes: int = UNKNOWN
    size_bytes: int = UNKNOWN
    torch_bytes: int = UNKNOWN


class SharedMemoryReader:
    """Asks the file system. What a program has opened and deleted counts as used, as it is.

    Args:
        released: where the time of the calls is counted: they give the GIL away.
        folder: where the files are.
    """

    def __init__(self, released: ReleasedTime | None = None, folder: str = _FOLDER) -> None:
        self._released = released or ReleasedTime()
        self._folder = folder

    def read(self) -> SharedMemoryFiles:
        """The numbers now; unknown on systems without such a file system."""
        start_ns = time.perf_counter_ns()
        try:
            system = os.statvfs(self._folder)
            torch_bytes = self._torch_bytes()
        except (OSError, AttributeError):
            return SharedMemoryFiles()
        finally:
            self._released.add(start_ns)
        used_bytes = (system.f_blocks - system.f_bfree) * system.f_frsize
        return SharedMemoryFiles(used_bytes, system.f_blocks * system.f_frsize, torch_bytes)

    def _torch_bytes(self) -> int:
        """Files that wait for a reader, or that nobody removed after a crash."""
        user, total_bytes = os.getuid(), 0
        with os.scandir(self._folder) as entries:
            for number, entry in enumerate(entries):
                if number == _MAX_ENTRIES:
                    return UNKNOWN
                if not entry.name.startswith(_PREFIX):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if status.st_uid == user:
                    total_bytes += status.st_blocks * _BLOCK_BYTES
        return total_bytes

"""Files of reports: written so that a crash leaves a whole one or none, kept until delivered.

Unlike everything else on the disk they outlive their process: the next agent of this user with the
same folder delivers what one that was killed has left. Whoever may deliver a file holds a lock on
it, which a process loses with its life.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from vramscope.outbox.spool import REPORTS
from vramscope.private_folder import check_private, make_private_folder

MAX_FILES: Final = 64
MAX_BYTES: Final = 64 << 20
"""What all reports of this user may take; then the oldest go."""
MAX_AGE_S: Final = 30 * 24 * 3600.0

_PREFIX: Final = "oom-"
_SUFFIX: Final = ".json"
_PART_SUFFIX: Final = ".part"
_PART_AGE_S: Final = 60.0


@dataclass
class ReportFile:
    """A file that this process may deliver."""

    path: str
    descriptor: int
    size_bytes: int
    held: set[int]
    """Descriptors of all files that the folder holds."""

    def let_go(self) -> None:
        """Leave it to others. A second call does nothing."""
        if self.descriptor in self.held:
            self.held.discard(self.descriptor)
            with contextlib.suppress(OSError):
                os.close(self.descriptor)

    def delete(self) -> None:
        """It was delivered, or nobody wants it."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self.let_go()


class ReportFolder:
    """The folder of one user's reports.

    Args:
        parent: folder of all spools of this user; made if missing, private.
    """

    def __init__(self, parent: str) -> None:
        self._parent = parent
        self.path = os.path.join(parent, REPORTS)
        self._held: set[int] = set()

    def write(self, name: str, data: bytes, *, sync: bool) -> ReportFile:
        """Write a report, in place of one with this name.

        Args:
            name: as :func:`file_name` makes it.
            data: of the report.
            sync: whether it has to survive the machine too, and not only the process.

        Raises:
            OSError: it cannot be written; nothing of it is left.
        """
        make_private_folder(self._parent)
        make_private_folder(self.path)
        path = os.path.join(self.path, name)
        part = f"{path}.{os.getpid()}{_PART_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(part, flags, 0o600)
        try:
            # Before it has its name: nobody may take it for left behind.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            if sync:
                os.fsync(descriptor)
            os.rename(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            os.close(descriptor)
            raise
        if sync:
            self._sync_folder()
        return self._file(path, descriptor, len(data))

    def claim_left(self, max_files: int = MAX_FILES) -> list[ReportFile]:
        """The files that no living process is going to deliver, newest first, now ours."""
        found: list[ReportFile] = []
        for entry in reversed(self._entries()):
            if len(found) >= max_files:
                break
            descriptor = _locked(entry.path)
            if descriptor is None:
                continue
            with contextlib.suppress(OSError):
                status = os.fstat(descriptor)
                is_there = os.stat(entry.path).st_ino == status.st_ino
                if is_there and time.time() - status.st_mtime < MAX_AGE_S:
                    found.append(self._file(entry.path, descriptor, status.st_size))
                    continue
                if is_there:
                    os.unlink(entry.path)
            os.close(descriptor)
        return found

    def tidy(self) -> None:
        """Delete the oldest beyond the bounds, and what a killed process had begun to write."""
        entries = self._entries()
        sizes: list[tuple[str, int]] = []
        for entry in entries:
            with contextlib.suppress(OSError):
                sizes.append((entry.path, entry.stat(follow_symlinks=False).st_size))
        total_bytes = sum(size for _, size in sizes)
        excess = len(sizes) - MAX_FILES
        for path, size in sizes:
            if excess <= 0 and total_bytes <= MAX_BYTES:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            total_bytes -= size
            excess -= 1
        self._remove_parts()

    def forget_after_fork(self) -> None:
        """In a forked child: a lock lasts for as long as anybody has a copy of its descriptor."""
        for descriptor in self._held:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._held.clear()

    def _file(self, path: str, descriptor: int, size_bytes: int) -> ReportFile:
        self._held.add(descriptor)
        return ReportFile(path, descriptor, size_bytes, self._held)

    def _entries(self) -> list[os.DirEntry[str]]:
        """Reports by name, which is by their time."""
        return sorted(
            (e for e in self._scan() if e.name.startswith(_PREFIX) and e.name.endswith(_SUFFIX)),
            key=lambda entry: entry.name,
        )

    def _remove_parts(self) -> None:
        for entry in self._scan():
            with contextlib.suppress(OSError):
                age_s = time.time() - entry.stat(follow_symlinks=False).st_mtime
                if entry.name.endswith(_PART_SUFFIX) and age_s > _PART_AGE_S:
                    os.unlink(entry.path)

    def _scan(self) -> Iterator[os.DirEntry[str]]:
        with contextlib.suppress(OSError):
            check_private(self.path)
            with os.scandir(self.path) as entries:
                yield from list(entries)

    def _sync_folder(self) -> None:
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def file_name(time_ns: int, rank: int) -> str:
    """Name of the file of a report: they sort by time."""
    return f"{_PREFIX}{time_ns}-{rank}{_SUFFIX}"


def _locked(path: str) -> int | None:
    """A descriptor that holds the lock of a file; ``None`` if somebody else does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor

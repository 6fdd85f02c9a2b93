"""Files that hold snapshots until they are delivered: private, bounded, and gone with the process.

A killed process leaves its folder behind. It lies among the spools and is locked as they are, so
the next agent of the same user removes it with them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from typing import Final

from vramscope.private_folder import make_private_folder

_LOCK_NAME: Final = "lock"


class SnapshotFolder:
    """A folder of this process.

    Args:
        parent: folder of all spools of this user; made if missing, private.
        name: name of this folder in it.
        max_bytes: how much all files together may take.
    """

    def __init__(self, parent: str, name: str, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._parent = parent
        self._folder = os.path.join(parent, name)
        self._lock_descriptor: int | None = None

    def path(self, identity: str) -> str:
        """Where the file of a snapshot lies; the folder is made.

        Raises:
            OSError: it cannot be made, or is not private.
        """
        make_private_folder(self._parent)
        make_private_folder(self._folder)
        if self._lock_descriptor is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._lock_descriptor = os.open(os.path.join(self._folder, _LOCK_NAME), flags, 0o600)
            fcntl.flock(self._lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.join(self._folder, f"{identity}.pickle.gz")

    def used_bytes(self) -> int:
        """What the files take now."""
        used_bytes = 0
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    used_bytes += entry.stat(follow_symlinks=False).st_size
        return used_bytes

    def remove(self) -> None:
        """Delete the folder and what is still in it."""
        descriptor, self._lock_descriptor = self._lock_descriptor, None
        if descriptor is not None:
            os.close(descriptor)
            shutil.rmtree(self._folder, ignore_errors=True)

    def forget_after_fork(self) -> None:
        """In a forked child: leave the files to their owner."""
        descriptor, self._lock_descriptor = self._lock_descriptor, None
        if descriptor is not None:
            os.close(descriptor)  # a copy: the owner's lock is not released by this

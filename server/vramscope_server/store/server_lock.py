"""Whether this process is the only server of a SQLite file."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final

_POLL_S: Final = 0.05


class ServerLock:
    """Held by the first server of a database file for as long as its process lives.

    A file of its own: a lock on the database itself would get in the way of SQLite's.

    Args:
        path: of the lock file; it stays when the lock is given back.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self, timeout_s: float = 0.0) -> bool:
        """Take the lock; ``False`` if another server still holds it when the time is over."""
        deadline_s = time.monotonic() + timeout_s
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    os.close(handle)
                    return False
                time.sleep(_POLL_S)
            except OSError:  # a file system without locks: nobody can hold one there
                os.close(handle)
                return True
            else:
                self._handle = handle
                return True

    def release(self) -> None:
        """Give the lock back. Doing so twice is harmless."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

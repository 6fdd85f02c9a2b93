"""The file by which agents of the same user find the server of this machine.

It holds a token, so that only its owner may read it, and a file that someone else put in its
place is never trusted and never touched.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from vramscope_protocol.errors import FORBIDDEN, VramscopeError

_FOLDER_MODE: Final = 0o700


class ServerEntry(msgspec.Struct):
    """How to reach the server of this machine."""

    url: str
    token: str
    pid: int
    started_ns: int
    version: str


def runtime_file_path(environ: Mapping[str, str], uid: int) -> Path:
    """``$XDG_RUNTIME_DIR/vramscope/server.json``, else the same below ``/tmp/vramscope-UID``."""
    folder = environ.get("XDG_RUNTIME_DIR")
    if folder and Path(folder).is_absolute():
        return Path(folder) / "vramscope" / "server.json"
    return Path(f"/tmp/vramscope-{uid}") / "server.json"


class RuntimeFile:
    """Written when the server listens, removed when it ends.

    Args:
        path: see :func:`runtime_file_path`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: ServerEntry | None = None

    def write(self, entry: ServerEntry) -> None:
        """Put the entry in place in one step; a reader sees the old file or the new one.

        Raises:
            VramscopeError: ``forbidden``: the folder belongs to someone else.
            OSError: the file cannot be written.
        """
        folder = self._path.parent
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        _check_owner(folder)
        folder.chmod(_FOLDER_MODE)
        # mkstemp makes the file 0600 from the start, so that the token is never readable by others.
        handle, name = tempfile.mkstemp(prefix=".server-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(entry))
            os.replace(name, self._path)
        except BaseException:
            os.unlink(name)
            raise
        self._written = entry

    def remove(self) -> None:
        """Remove the file, unless another server has put its own there since."""
        if self._written is None:
            return
        try:
            entry = msgspec.json.decode(self._path.read_bytes(), type=ServerEntry)
        except (OSError, msgspec.DecodeError):
            return  # gone, or not ours any more
        if (entry.pid, entry.started_ns) == (self._written.pid, self._written.started_ns):
            self._path.unlink(missing_ok=True)
        self._written = None


def _check_owner(folder: Path) -> None:
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise VramscopeError(
            FORBIDDEN,
            f"expected {folder} to be a folder of user {os.getuid()}, "
            f"got one of user {info.st_uid}",
        )

"""Folders that only this user can read, also inside a shared one such as /tmp."""

from __future__ import annotations

import contextlib
import os
import stat


def make_private_folder(folder: str) -> None:
    """Make a folder with mode 0700, or check that the one that exists is private.

    Raises:
        OSError: it cannot be made, or is a link, not ours, or open to others.
    """
    os.makedirs(os.path.dirname(folder) or ".", mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    check_private(folder)


def check_private(folder: str) -> None:
    """Refuse a folder that somebody else could read or plant files in.

    Raises:
        OSError: it is a link, not ours, or open to others.
    """
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(
            f"expected a folder of this user with mode 0700, got something else: {folder}"
        )

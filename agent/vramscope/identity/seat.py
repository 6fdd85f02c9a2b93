"""The place of rank 0, which a process that starts its ranks by itself has until one of them is it.

``mp.spawn`` and the like: the script is watched before its ranks exist, as rank 0 of its run. The
child that is rank 0 leaves a file for its parent, which then knows that it is no rank itself.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from pathlib import Path
from typing import Final

from vramscope.identity.process_life import life_of, own_life, short_name
from vramscope.local.runtime_file import runtime_folder
from vramscope.private_folder import make_private_folder

_PREFIX: Final = "rank0-"
_ABANDONED_AFTER_S: Final = 3600.0
"""Parents look every second: who has not by then was killed, or is not watched any more."""


def claim_seat(parent_pid: int) -> None:
    """Tell the parent that this process is rank 0.

    Raises:
        OSError: the user's runtime folder cannot be written to.
    """
    path = _path(life_of(parent_pid))
    make_private_folder(str(path.parent))
    _remove_abandoned(path.parent)
    path.touch(mode=0o600)


def is_seat_claimed() -> bool:
    """Whether a child of this process has said that it is rank 0; once."""
    path = _own_path(os.getpid(), os.fspath(runtime_folder()))
    if not os.path.exists(path):  # asked every second: that is all that it may cost
        return False
    with contextlib.suppress(OSError):
        os.unlink(path)
    return True


@functools.lru_cache(maxsize=1)
def _own_path(pid: int, folder: str) -> str:
    del pid, folder  # what it is the path of: another process, or another folder, has another one
    return os.fspath(_path(own_life()))


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > _ABANDONED_AFTER_S:
                path.unlink()


def _path(life: str) -> Path:
    return runtime_folder() / f"{_PREFIX}{short_name(life)}"

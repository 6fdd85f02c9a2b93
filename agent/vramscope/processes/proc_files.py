"""Files of /proc, read from processes that may end at any moment and may be somebody else's."""

from __future__ import annotations

import os
import stat
from typing import Final

_MAX_BYTES: Final = 8 << 20


class NoSuchProcess(Exception):
    """There is no such process, or none any more; the message is one line for a person."""

    def __init__(self, pid: int, message: str = "") -> None:
        super().__init__(
            message or f"no process {pid} here: it has ended, or belongs to another pid namespace"
        )
        self.pid = pid


def process_ids() -> list[int]:
    """Every process that /proc shows, in order of its number."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def read_proc(pid: int, name: str) -> bytes | None:
    """Content of ``/proc/PID/name``; ``None`` where this user may not read it.

    Raises:
        NoSuchProcess: the process has ended.
    """
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read(_MAX_BYTES)
    except PermissionError:
        return None
    except OSError as error:
        _raise_if_gone(pid, error)
        return None


def read_proc_link(pid: int, name: str) -> str | None:
    """Where the link ``/proc/PID/name`` points to; ``None`` where this user may not know.

    Raises:
        NoSuchProcess: the process has ended.
    """
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except PermissionError:
        return None
    except OSError as error:
        _raise_if_gone(pid, error)
        return None


def read_thread_names(pid: int) -> dict[int, str]:
    """Name of each thread by its number. The main thread has the number of the process.

    Raises:
        NoSuchProcess: the process has ended.
    """
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        raise NoSuchProcess(pid) from None
    names: dict[int, str] = {}
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/comm", "rb") as file:
                names[int(thread)] = file.read().rstrip(b"\n").decode(errors="replace")
        except OSError:
            continue  # the thread has ended meanwhile
    return names


def read_program_file(pid: int, path: str, *, same_root: bool) -> bytes | None:
    """Content of a file that process ``pid`` names ``path``; ``None`` if it cannot be had.

    Whoever owns the process may have put anything there: nothing but a regular file is opened.

    Args:
        pid: whose file it is.
        path: absolute, as the process sees it.
        same_root: whether the root of the process is ours. Where it is not, a link would lead
            out of it, and is not followed.
    """
    flags = os.O_PATH | os.O_CLOEXEC | (0 if same_root else os.O_NOFOLLOW)
    try:
        # O_PATH opens no device and waits for no pipe.
        found = os.open(f"/proc/{pid}/root{path}", flags)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            return None
        with open(f"/proc/self/fd/{found}", "rb") as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return None
    finally:
        os.close(found)


def _raise_if_gone(pid: int, error: OSError) -> None:
    """Tell a file that is not there from a process that is not there.

    Raises:
        NoSuchProcess: the process has ended.
    """
    if isinstance(error, ProcessLookupError) or not os.path.exists(f"/proc/{pid}/stat"):
        raise NoSuchProcess(pid) from None

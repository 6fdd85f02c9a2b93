"""The mark of a process that is being watched: the operating system's name of one thread.

Everybody may read it, from any container and without asking the process; it needs no file, and
is gone with the thread.
"""

from __future__ import annotations

import contextlib
from typing import Final

from vramscope.processes.proc_files import NoSuchProcess, read_thread_names

THREAD_MARK: Final = "vramscope-agent"
"""At most 15 bytes, which is what the kernel keeps. Not the bare name of the command: a process
that was started by it carries that one, and so do all its threads, which inherit names."""


def mark_this_thread() -> None:
    """Let the calling thread say that this process is watched; without /proc nothing says so."""
    with contextlib.suppress(OSError), open("/proc/thread-self/comm", "wb", buffering=0) as file:
        file.write(THREAD_MARK.encode())


def is_attached(pid: int) -> bool:
    """Whether an agent watches process ``pid`` now; ``False`` too if there is no such process."""
    try:
        return THREAD_MARK in read_thread_names(pid).values()
    except NoSuchProcess:
        return False

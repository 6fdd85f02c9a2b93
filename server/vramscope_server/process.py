"""Processes of this machine."""

from __future__ import annotations

from pathlib import Path


def process_alive(pid: int) -> bool:
    """Whether a process of that number runs on this machine.

    A zombie does not run: a job that was killed stays one until its parent takes note, and its
    connection is cut before that.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    except OSError:  # hidden from this user, or gone in the middle of the read
        return Path(f"/proc/{pid}").exists()
    # The name may hold anything, also brackets: the state is the first field behind the last one.
    return stat.rpartition(")")[2].split()[:1] not in (["Z"], ["X"])

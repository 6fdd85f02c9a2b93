"""Processes of this machine."""

from __future__ import annotations

import os


def process_alive(pid: int) -> bool:
    """Whether a process of that number exists on this machine."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it exists and belongs to someone else
        return True
    return True

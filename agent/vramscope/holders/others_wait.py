"""Lets the job's threads wait while a thread of the agent goes through what they work with.

Whoever looks holds what is looked at. If the job went on meanwhile, what it drops would stay for as
long as the look takes, at a moment when its memory is short, and would be freed on our thread.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

HOLD_S: Final = 1.0
"""Python asks us for its lock after so long; so no look holds the job for longer. A thread that has
begun to wait asks no sooner, even if another one of the job runs by then."""

_before_s: float | None = None


@contextmanager
def others_wait() -> Generator[None]:
    """Keep Python's lock, unless something inside lets go of it. On a thread of the agent."""
    global _before_s
    if _before_s is not None:
        yield  # inside another one
        return
    before_s = _before_s = sys.getswitchinterval()
    try:
        sys.setswitchinterval(HOLD_S)
        yield
    finally:
        sys.setswitchinterval(before_s)
        _before_s = None
        time.sleep(0)  # whoever waits has waited for long enough


def _after_fork_in_child() -> None:
    """The thread that was inside is not here to set it back."""
    global _before_s
    if _before_s is not None:
        sys.setswitchinterval(_before_s)
        _before_s = None


# Once per process: Python cannot take it back.
os.register_at_fork(after_in_child=_after_fork_in_child)

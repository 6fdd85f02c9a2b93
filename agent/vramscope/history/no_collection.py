"""Keeps Python from collecting garbage for a short time, as while frames are listed."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_keeping: Final[set[object]] = set()
"""One for each thread inside, where it was the job's wish to collect."""


@contextmanager
def no_collection() -> Generator[None]:
    """Keep Python from looking for garbage among what is being made.

    With so many new objects it would go through all of the job's, which may take longer than what
    is made; and it would free what is to be seen. Several threads may be inside.
    """
    mine = object()
    # Off, and not by us, is off by the job: then it stays so.
    was_on = gc.isenabled() or bool(_keeping)
    try:
        if was_on:
            _keeping.add(mine)
        gc.disable()  # inside: Ctrl-C may come right after it
        yield
    finally:
        _keeping.discard(mine)
        if was_on and not _keeping:
            gc.enable()


def current_frames() -> dict[int, FrameType]:
    """The innermost frame of each thread by its number, for the calling thread that of the caller.

    The caller must empty it: it holds the caller's frame, which holds it, a cycle in which the
    job's frames and tensors would stay until a garbage collection.
    """
    # Up to Python 3.11.4 a collection in there may wait for itself (gh-106883).
    with no_collection():
        # The only way to see other threads' frames, and documented in spite of its name.
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    frames[threading.get_ident()] = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    return frames


def _after_fork_in_child() -> None:
    """The threads that were inside are not here to let it collect again."""
    if _keeping:
        _keeping.clear()
        gc.enable()


# Once per process: Python cannot take it back.
os.register_at_fork(after_in_child=_after_fork_in_child)

"""Keeps Python from collecting garbage for a short time."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """Keep Python from looking for garbage among what is being made.

    With so many new objects it would go through all of the job's, which may take longer than what
    is made; and it would free what is to be seen.
    """
    was_on = gc.isenabled()
    try:
        gc.disable()  # inside: Ctrl-C may come right after it
        yield
    finally:
        if was_on:
            gc.enable()

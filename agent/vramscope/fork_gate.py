"""Holds a fork of the job back while a thread of ours is where a child could not follow it.

A child is born with one thread, in a copy of memory in which the others stopped halfway: a module
that one of them was importing stays locked for ever, and so does what a C library has locked. A
child that imports that module, or calls that library, never comes back. So what a thread of ours
imports late, and what it asks of the driver, is done inside :func:`no_fork`, and a fork waits
until that is left, within a limit. What starts another program does not wait: nothing is shared.

There is no lock here that could itself be inherited. Whoever enters, and whoever forks, first says
so and then looks for the other: one of them always sees it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

FORK_WAITS_S: Final = 1.0
"""A fork waits no longer, and only once for each stay that takes longer."""
_POLL_S: Final = 0.0005


class _Stay:
    """One thread inside."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.is_waited_for = True


_inside: set[_Stay] = set()
_forking: set[int] = set()


@contextmanager
def no_fork() -> Generator[None]:
    """Keep other threads of this process from forking for a short time."""
    stay = _enter()
    try:
        yield
    finally:
        _inside.discard(stay)


def _enter() -> _Stay:
    stay = _Stay()
    deadline_s = time.monotonic() + FORK_WAITS_S
    while True:
        _inside.add(stay)
        # A fork takes as long as it takes to copy the page tables.
        if not _forking - {stay.thread} or time.monotonic() > deadline_s:
            return stay
        _inside.discard(stay)
        time.sleep(_POLL_S)


def _before_fork() -> None:
    own_thread = threading.get_ident()
    _forking.add(own_thread)
    deadline_s = time.monotonic() + FORK_WAITS_S
    while others := [s for s in list(_inside) if s.is_waited_for and s.thread != own_thread]:
        if time.monotonic() > deadline_s:
            for stay in others:
                stay.is_waited_for = False
            return
        time.sleep(_POLL_S)


def _after_fork_in_parent() -> None:
    _forking.discard(threading.get_ident())


def _after_fork_in_child() -> None:
    _forking.clear()
    _inside.clear()


# Once per process: Python cannot take it back.
os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)

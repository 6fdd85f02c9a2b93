"""How the process ends, and how it forks: the two things the agent must notice by itself.

Signals are left alone: a job that dies of SIGTERM without cleaning up sends no goodbye, and the
server says "lost". Everything else ends through ``atexit``.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.util import Finalize
from types import TracebackType
from typing import Literal

from msgspec import Struct

from vramscope.guard import guarded, text_of

_MAX_TEXT = 500
_AFTER_THE_JOBS_OWN = -100


class Ending(Struct, frozen=True):
    """How the job ended, as far as it is known. An unknown exit code is ``None``, never 0."""

    reason: Literal["exit", "exception"] = "exit"
    exit_code: int | None = None
    text: str = ""


def ending_of(error: BaseException | None) -> Ending:
    """The ending that follows from what left the script's outermost frame."""
    if error is None:
        return Ending(exit_code=0)
    if isinstance(error, SystemExit):
        code: object = error.code
        if code is None:
            return Ending(exit_code=0)
        if isinstance(code, int):
            return Ending(exit_code=code & 0xFF)
        return Ending(exit_code=1, text=text_of(error)[:_MAX_TEXT])
    text = f"{type(error).__name__}: {text_of(error)}"[:_MAX_TEXT]
    # An interrupted interpreter ends by the signal, which a shell reports as 128 + 2; but not of an
    # exception of a class that is derived from it.
    return Ending("exception", 130 if type(error) is KeyboardInterrupt else 1, text)


class Lifecycle:
    """Watches for the end of the process and for forks.

    Args:
        on_exit: called once, at exit of the process that installed this.
        on_fork: called in every forked child; must take no lock, for its holder is not there.
    """

    def __init__(self, on_exit: Callable[[Ending], object], on_fork: Callable[[], None]) -> None:
        self._on_exit = on_exit
        self._on_fork = on_fork
        self._pid = os.getpid()
        self._previous_hook: Callable[..., object] | None = None
        self._finalizer: Callable[[], object] | None = None
        self._has_ended = False
        self.ending = Ending()

    def install(self) -> None:
        """Start to watch."""
        global _current
        _register_handlers()
        _current = self
        self._finalizer = self._at_end_of_worker()
        self._previous_hook = sys.excepthook
        sys.excepthook = self._excepthook

    def remove(self) -> None:
        """Stop watching. A hook that somebody chained to ours stays, and only passes on."""
        global _current
        if _current is self:
            _current = None
        self._unhook()

    def forked(self) -> None:
        """In a forked child: this process was never attached."""
        try:
            self._on_fork()
        finally:
            # Last: what lay over it is gone then.
            self._unhook()

    def ended(self) -> None:
        """The process ends, as far as it runs what is to run then."""
        # In a spawned child both ways to learn of the end lead here.
        if os.getpid() == self._pid and not self._has_ended:
            self._has_ended = True
            with guarded("exit"):
                self._on_exit(self.ending)

    def _unhook(self) -> None:
        finalizer, self._finalizer = self._finalizer, None
        if finalizer is not None:
            finalizer()
        if sys.excepthook == self._excepthook and self._previous_hook is not None:
            sys.excepthook = self._previous_hook

    def _at_end_of_worker(self) -> Callable[[], object] | None:
        """Have :mod:`multiprocessing` tell of the end of a process that it started.

        One that it forked ends without exit handlers; in all of them it shows, and so hides from
        the excepthook, what the process ends of.

        Returns:
            What undoes it; ``None`` in other processes.
        """
        if multiprocessing.parent_process() is None:
            return None

        def at_end() -> None:
            # Still on its way through the frames of multiprocessing, if there is one.
            self.ending = ending_of(sys.exc_info()[1])
            self.ended()

        return Finalize(None, at_end, exitpriority=_AFTER_THE_JOBS_OWN).cancel

    def _excepthook(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        if _is_the_end(error):
            self.ending = ending_of(error)
        previous = self._previous_hook or sys.__excepthook__
        previous(kind, error, trace)


def _is_the_end(error: BaseException) -> bool:
    """Whether the process ends of ``error``: a job may show one, and a prompt goes on after it."""
    # The interpreter sets it before it calls the hook; who calls the hook by hand does not.
    return getattr(sys, "last_value", None) is error and not hasattr(sys, "ps1")


_current: Lifecycle | None = None
_is_fork_watched = False
_is_exit_watched = False


def _register_handlers() -> None:
    """Once per process: Python cannot take a fork handler back, and keeps the place of a function
    that was to be called at exit, so that each attach and detach would leave one behind."""
    global _is_fork_watched, _is_exit_watched
    if not _is_fork_watched:
        _is_fork_watched = True
        os.register_at_fork(after_in_child=_after_fork_in_child)
    if not _is_exit_watched:
        _is_exit_watched = True
        atexit.register(_at_exit)


def _at_exit() -> None:
    if _current is not None:
        _current.ended()


def _after_fork_in_child() -> None:
    global _current, _is_exit_watched
    # Multiprocessing forgets what its children inherit of that.
    atexit.unregister(_at_exit)
    _is_exit_watched = False
    forked, _current = _current, None
    if forked is not None:
        with guarded("fork"):
            forked.forked()

"""Sees the exceptions that end the job or one of its threads, before Python shows them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from vramscope.guard import guarded

Saw = Callable[[BaseException, bool], None]


class ExceptionHooks:
    """In front of ``sys.excepthook`` and ``threading.excepthook``, which are called as before.

    Args:
        saw: told of each exception, on its thread, and whether the process ends of it.
    """

    def __init__(self, saw: Saw) -> None:
        self._saw: Saw | None = saw
        self._main_before: Callable[..., Any] | None = None
        self._thread_before: Callable[..., Any] | None = None

    def install(self) -> None:
        """See exceptions from now on."""
        self._main_before = sys.excepthook
        self._thread_before = threading.excepthook
        sys.excepthook = self._of_main
        threading.excepthook = self._of_thread

    def remove(self) -> None:
        """See nothing more. A hook that somebody chained to ours stays, and only passes on."""
        self._saw = None
        if sys.excepthook == self._of_main and self._main_before is not None:
            sys.excepthook = self._main_before
        if threading.excepthook == self._of_thread and self._thread_before is not None:
            threading.excepthook = self._thread_before

    def forget_after_fork(self) -> None:
        """In a forked child: see nothing."""
        self.remove()

    def _of_main(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        # At a prompt it goes on after that.
        self._look(error, not hasattr(sys, "ps1"))
        before = self._main_before or sys.__excepthook__
        before(kind, error, trace)

    def _of_thread(self, args: Any) -> None:
        if args.exc_value is not None:
            self._look(args.exc_value, False)
        before = self._thread_before or threading.__excepthook__
        before(args)

    def _look(self, error: BaseException, is_end: bool) -> None:
        saw = self._saw
        if saw is not None:
            with guarded("exception hook"):
                saw(error, is_end)

"""Holds Ctrl-C back while the model is changed, where the process goes on after it.

A program ends of Ctrl-C. A notebook or a prompt goes on, and an allocator that was left in the
middle of an allocation would be wrong from then on.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from types import FrameType, TracebackType
from typing import Any


def interrupts_held() -> AbstractContextManager[None]:
    """What holds them back in a shell, and nothing in a program. Entered under one lock only."""
    return HeldInterrupts() if hasattr(sys, "ps1") else nullcontext()


class HeldInterrupts(AbstractContextManager[None]):
    """Delivers at its end what came in its middle. Re-entrant; harmless off the main thread."""

    def __init__(self) -> None:
        self._depth = 0
        self._handler: Any = None
        self._came: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> None:
        if self._handler is not None:
            self._depth += 1
            return
        if threading.current_thread() is not threading.main_thread():
            return
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            # Up to here an interrupt comes as it would anyway, and from here on it waits.
            signal.signal(signal.SIGINT, self._hold)
            self._handler = handler

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._depth:
            self._depth -= 1
            return
        handler, self._handler = self._handler, None
        if handler is None:
            return
        came, self._came = self._came, None
        signal.signal(signal.SIGINT, handler)
        if came is not None:
            handler(*came)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._came = (number, frame)

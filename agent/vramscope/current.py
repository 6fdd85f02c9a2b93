"""The one session of this process, so that attaching twice is one attach."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vramscope.session import Session

_session: Session | None = None
_lock = threading.Lock()


def session() -> Session | None:
    """The session, if there ever was one; it may be over."""
    return _session


def session_or(open_session: Callable[[], Session]) -> Session:
    """The active session, else the one that ``open_session`` makes, which it is from now on."""
    global _session
    with _lock:
        if _session is None or not _session.is_active:
            _session = open_session()
        return _session


def _forget_after_fork() -> None:
    """A forked child is not attached, and may have been forked in the middle of an attach."""
    global _session, _lock
    _session = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)

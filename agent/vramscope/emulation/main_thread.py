"""Running something on the main thread from another one, between two bytecodes."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any, Final

_RETRY_S: Final = 0.005
_PENDING_CALL: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

# What C calls must live until it has been called, which may be after everybody has given up.
_pending: list[Any] = []


def run_on_main_thread(function: Callable[[], bool], timeout_s: float) -> bool:
    """Have the main thread call ``function``, again and again until that says that it worked.

    It may be called once more after the time is over, if the main thread is not in Python.

    Args:
        function: must not raise; whether it worked.
        timeout_s: how long to go on.

    Returns:
        Whether it worked in time.
    """
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        called = _call_soon(function)
        if called is not None:
            called.ended.wait(max(0.0, deadline_s - time.monotonic()))
            if called.worked:
                return True
        time.sleep(_RETRY_S)
    return False


class _Call:
    def __init__(self, function: Callable[[], bool]) -> None:
        self._function = function
        self.ended = threading.Event()
        self.worked = False
        self.entry = _PENDING_CALL(self._run)

    def _run(self, _: object) -> int:
        try:
            self.worked = self._function()
        finally:
            _pending.remove(self)
            self.ended.set()
        return 0


def _call_soon(function: Callable[[], bool]) -> _Call | None:
    """``None`` when too many calls wait already."""
    call = _Call(function)
    _pending.append(call)
    if ctypes.pythonapi.Py_AddPendingCall(call.entry, None) != 0:
        _pending.remove(call)
        return None
    return call

"""A thread for the time of one injection.

ptrace belongs to a thread, not to a process, and the kernel lets go of everything that a thread
traces when it ends. So a target that cannot be stopped is let go, the end of one that dies reaches
its parent, and Ctrl-C, which Python handles on the main thread, cannot come in between.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from vramscope.injection.errors import InjectionError
from vramscope.injection.ptrace import ThreadGone

_T = TypeVar("_T")

_FIRST_OF_ALL: Final = -20
"""Nice value; of this thread only, for as long as it lives."""


def run_as_tracer(work: Callable[[], _T]) -> _T:
    """Run something on a thread of its own, and hand on its result or its exception.

    Raises:
        InjectionError: ``gone`` where the target has ended meanwhile.
    """
    tracer = _Tracer(work)
    thread = threading.Thread(target=tracer.run, name="vramscope-injection")
    thread.start()
    thread.join()
    return tracer.outcome()


class _Tracer(Generic[_T]):
    def __init__(self, work: Callable[[], _T]) -> None:
        self._work = work
        self._results: list[_T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        collected = gc.isenabled()
        gc.disable()  # A collection would last longer than the whole stop.
        with contextlib.suppress(OSError):
            # Only root may; on a busy machine the stop is then about half as long.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _FIRST_OF_ALL)
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - it is raised again on the other thread
            self._error = error
        finally:
            if collected:
                gc.enable()

    def outcome(self) -> _T:
        if isinstance(self._error, ThreadGone):
            raise InjectionError("the process has ended", "gone") from self._error
        if self._error is not None:
            raise self._error
        return self._results[0]

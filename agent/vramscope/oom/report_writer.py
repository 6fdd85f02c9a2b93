"""Writes reports on a thread of its own: a disk that hangs must not hold the job for long."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from vramscope.guard import Attempt, guarded
from vramscope.oom.report_folder import ReportFile, ReportFolder

THREAD_NAME: Final = "vramscope-oom"

Written = Callable[["ReportFile | None", "Exception | None"], None]


class Writing:
    """One file that is being written, and who is told then."""

    def __init__(self, name: str, data: bytes, *, sync: bool, told: Written) -> None:
        self.name = name
        self.data = data
        self.sync = sync
        self.told = told
        self._is_over = threading.Event()

    def end(self) -> None:
        """It is written, or will not be."""
        self._is_over.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end; whether it has come."""
        return self._is_over.wait(max(0.0, timeout_s))


class ReportWriter:
    """A thread from the first report on, until it is closed.

    Args:
        folder: where the files go.
    """

    def __init__(self, folder: ReportFolder) -> None:
        self._folder = folder
        # Simple: it may be put into from inside itself, by a finalizer that runs out of memory.
        self._queue: SimpleQueue[Writing | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.RLock()
        self._is_closed = False

    def write(self, writing: Writing) -> None:
        """Write a file; who is told is called on the thread."""
        if self._is_closed or not self._has_thread():
            self._do(writing)  # at the end of the process: no thread can be started any more
        else:
            self._queue.put(writing)

    def close(self, timeout_s: float) -> None:
        """Write what waits, as far as the time goes, and end the thread."""
        self._is_closed = True
        thread = self._thread
        if thread is not None:
            self._queue.put(None)
            thread.join(max(0.0, timeout_s))

    def forget_after_fork(self) -> None:
        """In a forked child: the thread is not here, and the files are the parent's."""
        self._is_closed = True
        self._thread = None
        self._starting = threading.RLock()
        self._queue = SimpleQueue()

    def _has_thread(self) -> bool:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
                with contextlib.suppress(RuntimeError):
                    thread.start()
                    self._thread = thread
            return self._thread is not None

    def _run(self) -> None:
        while (writing := self._queue.get()) is not None:
            self._do(writing)

    def _do(self, writing: Writing) -> None:
        try:
            with guarded("out of memory report"):
                file: ReportFile | None = None
                with Attempt() as attempt:
                    file = self._folder.write(writing.name, writing.data, sync=writing.sync)
                writing.told(file, attempt.error)
                if writing.sync:
                    self._folder.tidy()
        finally:
            writing.end()

"""A snapshot that is being written, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from vramscope.collectors.self_cost import SelfCost
from vramscope.guard import Attempt, summary
from vramscope.history.pickle_file import PickleFile, WriteStopped, write_pickle

THREAD_NAME = "vramscope-snapshot"


class Writing:
    """Writes one snapshot; started once.

    Args:
        snapshot: as PyTorch returns it; it is taken apart.
        find_path: says where to, and how much it may take there; called on the thread.
        on_written: told when the file is there; called on the thread.
        self_cost: where the thread's CPU time is counted.
    """

    def __init__(
        self,
        snapshot: dict[str, Any],
        find_path: Callable[[], tuple[str, int]],
        on_written: Callable[[PickleFile], None],
        self_cost: SelfCost,
    ) -> None:
        self._snapshot = snapshot
        self._find_path = find_path
        self._on_written = on_written
        self._self_cost = self_cost
        self._is_cancelled = False
        self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        self.file: PickleFile | None = None
        """The file, once it is written."""
        self.error = ""
        """Why there is none."""

    def start(self) -> None:
        """Start to write."""
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it is written, or never will be."""
        return self.file is not None or bool(self.error)

    def cancel(self) -> None:
        """Stop at the next piece. Any thread."""
        self._is_cancelled = True

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end; whether it has come."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with Attempt() as attempt, self._self_cost.part("snapshots"):
            path, max_bytes = self._find_path()
            file = write_pickle(
                self._snapshot, path, max_bytes, is_cancelled=lambda: self._is_cancelled
            )
            self._on_written(file)
            self.file = file
        if attempt.error is not None:
            error = attempt.error
            self.error = str(error) if isinstance(error, WriteStopped) else summary(error)

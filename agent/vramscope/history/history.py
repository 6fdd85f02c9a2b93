"""Recording windows and snapshots: begun, bounded and ended on the training thread, at boundaries.

A recording that the job has started itself is never touched, and ours gives way when the job
starts one.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from vramscope.collectors.self_cost import SelfCost
from vramscope.guard import guarded
from vramscope.history.backward_lines import BackwardLines
from vramscope.history.host_memory import HostMemoryBudget, entries_within
from vramscope.history.pickle_file import PickleFile
from vramscope.history.pytorch_history import PytorchHistory, Snapshot, counts
from vramscope.history.snapshot_folder import SnapshotFolder
from vramscope.history.taking import Taking
from vramscope.history.user_recording import UserRecording
from vramscope.history.window import Window
from vramscope.history.writing import Writing
from vramscope.transport.snapshot_lane import Shipment
from vramscope_protocol.errors import CONFLICT, VramscopeError
from vramscope_protocol.messages import SnapshotBegin, SnapshotMode
from vramscope_protocol.parameters import HistoryParams

Origin = Literal["command", "rule"]

_USERS_OWN: Final = "the job records a history of its own, which is left alone"
_CLOSE_LOCK_S: Final = 0.5


class BusyDevice(Protocol):
    """What is asked of the device."""

    def busy_reason(self) -> str | None:
        """Why it must not be touched now."""
        ...


class History:
    """Owns the recording of this process.

    Args:
        pytorch: reaches PyTorch.
        device: says when nothing may be done.
        folder: where snapshots lie until they are delivered.
        ship: takes a snapshot to be delivered; any thread.
        self_cost: what the writing thread takes is counted there.
    """

    def __init__(
        self,
        pytorch: PytorchHistory,
        device: BusyDevice,
        folder: SnapshotFolder,
        ship: Callable[[Shipment], object],
        self_cost: SelfCost,
    ) -> None:
        self._pytorch = pytorch
        self._device = device
        self._folder = folder
        self._ship = ship
        self._self_cost = self_cost
        self._user = UserRecording(lambda: pytorch.is_calling, self._give_way)
        self._backward: BackwardLines | None = None
        self._window: Window | None = None
        self._writing: Writing | None = None
        self._pid = os.getpid()
        self._is_closed = False
        # Held while a window begins or ends: the job's threads and a detach may meet here.
        self._lock = threading.RLock()

    @property
    def window(self) -> Window | None:
        """The recording that is going on."""
        return self._window

    @property
    def marks_backward(self) -> bool:
        """Whether backward passes are marked with the lines of the forward pass."""
        return self._backward is not None and self._backward.is_installed

    def start(
        self, params: HistoryParams, origin: Origin, issued_by: str, *, gives_way: bool = False
    ) -> Window:
        """Record from now on. Training thread, at a boundary.

        Args:
            params: what is recorded, and for how long.
            origin: who asked for it.
            issued_by: id of the command.
            gives_way: whether this one ends when another one is asked for.

        Raises:
            VramscopeError: ``conflict``, somebody records already, or there is no device.
        """
        with self._lock:
            if self._window is not None and self._window.gives_way and not gives_way:
                self._end(self._window, "another recording was asked for")
            if self._window is not None:
                raise VramscopeError(CONFLICT, "a history is being recorded already")
            if self._pytorch.is_recording():
                raise VramscopeError(CONFLICT, _USERS_OWN)
            if self._is_closed:
                raise VramscopeError(CONFLICT, "the agent is leaving")
            budget_bytes = params.max_mib << 20
            budget = HostMemoryBudget(budget_bytes)
            window = Window(params, 0, budget, origin, issued_by, gives_way)
            stacks = window.has_stacks
            max_entries = entries_within(budget_bytes, params.mode, stacks=stacks)
            window.max_entries = max_entries
            self._window = window
            is_started = False
            try:
                self._user.install()
                self._pytorch.start(params.mode, stacks=stacks, max_entries=max_entries)
                if params.backward_lines:
                    self._backward = BackwardLines()
                    self._backward.install()
                is_started = True
            finally:
                if not is_started:
                    self._end(window, "it could not be started")
            return window

    def stop(self, reason: str) -> Window:
        """Record nothing more, and forget what was recorded.

        Raises:
            VramscopeError: ``conflict``, nothing of ours is recorded.
        """
        with self._lock:
            window = self._window
            if window is None:
                is_theirs = self._pytorch.is_recording()
                raise VramscopeError(CONFLICT, _USERS_OWN if is_theirs else "nothing is recorded")
            self._end(window, reason)
            return window

    def abort(self, window: Window, reason: str) -> None:
        """The same for this window, if it still goes on. Any thread."""
        with self._lock:
            if self._window is window:
                self._end(window, reason)

    def take(self, *, traces: bool, step: int, origin: Origin, issued_by: str) -> Taking:
        """Take a snapshot now, and have it written and sent. Training thread, at a boundary.

        Raises:
            VramscopeError: ``conflict``, the last one is still being written, there is no device,
                or no history although one is wanted.
        """
        with self._lock:
            if self._writing is not None and not self._writing.is_over:
                raise VramscopeError(CONFLICT, "the last snapshot is still being written")
            if self._is_closed:
                raise VramscopeError(CONFLICT, "the agent is leaving")
            if traces and not self._pytorch.is_recording():
                raise VramscopeError(CONFLICT, "no history is recorded: history_start begins one")
            window = self._window
            start_s = time.perf_counter()
            with self._self_cost.part("history"):
                snapshot = self._pytorch.snapshot(traces=traces)
            result: dict[str, Any] = {
                "gil_ms": (time.perf_counter() - start_s) * 1e3,
                **counts(snapshot),
            }
            identity = uuid.uuid4().hex
            begin = SnapshotBegin(
                identity,
                time.time_ns(),
                0,
                0,
                "",
                step=step,
                mode=self._mode(traces=traces),
                stacks=window is not None and window.has_stacks,
                origin=origin,
                issued_by=issued_by,
                steps=list(window.marks) if window is not None and traces else [],
            )
            return self._write(snapshot, begin, result)

    def at_boundary(self, step: int) -> None:
        """Look after the window; on the training thread, before the commands."""
        window = self._window
        if window is None or not self._lock.acquire(blocking=False):
            return
        try:
            if self._window is not window:
                return
            window.mark_step(step)
            excess = window.budget.excess()
            if excess is not None:
                self._end(window, excess)
            elif window.has_all_steps and self._device.busy_reason() is None:
                self._end_with_snapshot(window, step)
        finally:
            self._lock.release()

    def close(self, timeout_s: float) -> None:
        """End the recording, and wait a little for a snapshot that is being written."""
        self._is_closed = True
        # A job's thread that hangs in here must not take a detach with it.
        has_lock = self._lock.acquire(timeout=_CLOSE_LOCK_S)
        try:
            window = self._window
            if window is not None:
                self._end(window, "the agent is leaving")
        finally:
            if has_lock:
                self._lock.release()
        writing = self._writing
        if writing is not None and not writing.wait(timeout_s):
            writing.cancel()

    def remove_folder(self) -> None:
        """Delete what was not delivered: nothing will be any more."""
        self._folder.remove()

    def forget_after_fork(self) -> None:
        """In a forked child: nothing is recorded here, and the files are the parent's."""
        self._window = None
        self._writing = None
        self._is_closed = True
        self._lock = threading.RLock()
        self._user.forget_after_fork()
        if self._backward is not None:
            self._backward.forget_after_fork()
        self._folder.forget_after_fork()

    def _end_with_snapshot(self, window: Window, step: int) -> None:
        reason = "it could not be dumped"
        try:
            window.taking = self.take(
                traces=True,
                step=step,
                origin="rule" if window.origin == "rule" else "command",
                issued_by=window.issued_by,
            )
            reason = ""
        except VramscopeError as error:
            reason = error.message
        finally:
            self._end(window, reason)

    def _end(self, window: Window, reason: str, *, stops: bool = True) -> None:
        """Lock held, but for a close that could not get it."""
        self._window = None
        window.ended = reason
        backward, self._backward = self._backward, None
        if backward is not None:
            with guarded("backward lines"):
                backward.remove()
        with guarded("history"):
            self._user.remove()
        if stops:
            with guarded("history"):
                self._pytorch.stop()

    def _give_way(self) -> None:
        """The job is about to start or stop a recording itself. On the job's thread."""
        with self._lock:
            window = self._window
            if window is not None:
                self._end(window, "the job has started or stopped a recording of its own")

    def _mode(self, *, traces: bool) -> SnapshotMode:
        if self._window is not None:
            is_shown = traces or self._window.params.mode == "state"
            return self._window.params.mode if is_shown else "segments"
        return "user" if traces else "segments"

    def _write(self, snapshot: Snapshot, begin: SnapshotBegin, result: dict[str, Any]) -> Taking:
        def find_path() -> tuple[str, int]:
            return self._folder.path(begin.id), self._folder.max_bytes - self._folder.used_bytes()

        def written(file: PickleFile) -> None:
            begin.raw_bytes, begin.wire_bytes = file.raw_bytes, file.wire_bytes
            begin.sha256 = file.sha256
            self._ship(Shipment(begin, file.path))

        self._writing = writing = Writing(snapshot, find_path, written, self._self_cost)
        writing.start()
        return Taking(begin.id, writing, result)

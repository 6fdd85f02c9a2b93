"""The history of PyTorch's CUDA allocator as it is reached in 2.4 to 2.14, without importing torch.

Everything goes through the job's own ``torch.cuda.memory``. An emulated device answers there too.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from typing import Any, Final, Literal, cast

from vramscope.devices.caching_allocator import initialised_cuda, read_snapshot
from vramscope.history.no_collection import no_collection
from vramscope_protocol.errors import CONFLICT, VramscopeError

HistoryMode = Literal["state", "alloc", "all"]
Snapshot = dict[str, Any]

_NOT_UP: Final = "this process has not used the device yet"
# What newer releases take besides, where they take it: an empty ring to begin with (2.8), and
# the job's own scopes from all of its threads (2.8).
_MORE: Final = {"clear_history": True, "global_record_annotations": True}


class PytorchHistory:
    """Starts and stops the recording, and takes snapshots. On the training thread, at a boundary.

    Args:
        emulated: whether the device is an emulated one.
    """

    def __init__(self, *, emulated: bool) -> None:
        self._emulated = emulated
        self.is_calling = False
        """Whether the call that arrives at PyTorch at this moment is one of these."""

    @property
    def version(self) -> str:
        """Release of the job's PyTorch."""
        return str(getattr(sys.modules.get("torch"), "__version__", ""))

    def is_recording(self) -> bool:
        """Whether a history is recorded, whoever has asked for it."""
        c_module = self._c_module()
        is_enabled = getattr(c_module, "_cuda_isHistoryEnabled", None)
        return is_enabled is not None and bool(is_enabled())

    def start(self, mode: HistoryMode, *, stacks: bool, max_entries: int) -> None:
        """Record from now on.

        Never with stacks of C++: they are put into words inside the snapshot, for seconds.

        Raises:
            VramscopeError: ``conflict``, there is no device.
        """
        self._require()
        if mode == "state":
            options: dict[str, Any] = {"context": "state", "max_entries": 1}
        else:
            options = {"context": mode if stacks else None, "max_entries": max_entries}
        known = inspect.signature(self._memory()._record_memory_history).parameters
        options |= {name: value for name, value in _MORE.items() if name in known}
        enabled = "state" if mode == "state" else "all"
        self._record(enabled, stacks="python", **options)

    def stop(self) -> None:
        """Record nothing more, and forget what was recorded. Any thread."""
        if self._c_module() is not None:
            self._record(None)

    def snapshot(self, *, traces: bool) -> Snapshot:
        """Segments of all devices, with the history on request.

        Raises:
            VramscopeError: ``conflict``, there is no device.
        """
        c_module = self._require()
        with no_collection():
            if traces or self._emulated:
                snapshot: Snapshot = self._memory()._snapshot()
            else:
                snapshot = read_snapshot(c_module)
        if not traces:
            # Where PyTorch cannot leave it out. Viewers expect one list a device.
            devices = 1 + max((s["device"] for s in snapshot["segments"]), default=0)
            count = max(devices, len(snapshot.get("device_traces", ())))
            snapshot["device_traces"] = [[] for _ in range(count)]
            snapshot.pop("external_annotations", None)
        return snapshot

    def _record(self, enabled: str | None, **options: Any) -> None:
        self.is_calling = True
        try:
            self._memory()._record_memory_history(enabled, **options)
        finally:
            self.is_calling = False

    def _memory(self) -> Any:
        return cast("Any", sys.modules["torch"]).cuda.memory

    def _c_module(self) -> Any:
        """``torch._C`` of a process that uses the device; nothing is initialised by asking."""
        if self._emulated:
            return getattr(sys.modules.get("torch"), "_C", None)
        return initialised_cuda()

    def _require(self) -> Any:
        c_module = self._c_module()
        if c_module is None:
            raise VramscopeError(CONFLICT, _NOT_UP)
        return c_module


def counts(snapshot: Snapshot) -> dict[str, int]:
    """How many segments, blocks and trace entries a snapshot has."""
    segments = snapshot["segments"]
    return {
        "segments": len(segments),
        "blocks": sum(len(segment["blocks"]) for segment in segments),
        "entries": sum(map(len, cast("Iterable[list[Any]]", snapshot["device_traces"]))),
    }

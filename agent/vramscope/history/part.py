"""The part of the agent that records histories and takes snapshots, wired."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vramscope.collectors.self_cost import SelfCost
from vramscope.commands.call import Handler
from vramscope.commands.history import history_handlers
from vramscope.config import Config
from vramscope.devices.caching_allocator import current_bytes
from vramscope.devices.device import Device, DeviceMemory
from vramscope.guard import guarded
from vramscope.history.history import History
from vramscope.history.pytorch_history import PytorchHistory
from vramscope.history.recording_column import RecordingColumn
from vramscope.history.rule_watch import RuleWatch
from vramscope.history.snapshot_folder import SnapshotFolder
from vramscope.sampling.clock import Clock
from vramscope.steps.step_columns import StepColumns
from vramscope.transport.snapshot_lane import Shipment
from vramscope_protocol.messages import Event


class HistoryPart:
    """Recording windows, snapshots and the rule, of one process.

    Args:
        config: options.
        stream: names the folder of the files.
        device: what is recorded.
        clock: times of this stream.
        emit: takes an event; must not block.
        ship: takes a snapshot to be delivered; any thread.
        self_cost: what it costs.
    """

    def __init__(
        self,
        config: Config,
        stream: str,
        device: Device,
        *,
        clock: Clock,
        emit: Callable[[Event], None],
        ship: Callable[[Shipment], object],
        self_cost: SelfCost,
    ) -> None:
        folder = SnapshotFolder(config.spool_dir, f"{stream}-snapshots", config.snapshot_bytes)
        pytorch = PytorchHistory(emulated=config.emulate)
        self._pytorch = pytorch
        self._history = History(pytorch, device, folder, ship, self_cost)
        self._watch: RuleWatch | None = None
        if config.history_rule is not None:
            self._watch = RuleWatch(config.history_rule, self._history, device, clock, emit)

    @property
    def history(self) -> History:
        """Owns the recording."""
        return self._history

    def columns(self) -> StepColumns:
        """What a step row says of it."""
        return RecordingColumn(self._history, self._pytorch)

    def handlers(self) -> Mapping[str, Handler]:
        """The commands about snapshots and the history."""
        return history_handlers(self._history)

    def look(self, stats: Mapping[str, Any] | None, memory: DeviceMemory) -> None:
        """Compare what was just sampled with the rule. Sampler thread."""
        if self._watch is not None:
            self._watch.look(current_bytes(stats, "reserved_bytes"), memory)

    wanted: tuple[object, ...] = ()

    @property
    def goes_on(self) -> bool:
        """Whether a window does, which counts the steps; one begins at the end of a step only."""
        return self._history.window is not None

    def at_boundary(self, step: int) -> None:
        """A step has ended. Training thread, before the commands."""
        with guarded("history"):
            self._history.at_boundary(step)
            if self._watch is not None:
                self._watch.at_boundary(step)

    def close(self, timeout_s: float) -> None:
        """End the recording, and leave PyTorch as it was."""
        with guarded("history"):
            self._history.close(timeout_s)

    def remove_files(self) -> None:
        """Delete what was not delivered: nothing will be any more."""
        with guarded("snapshots"):
            self._history.remove_folder()

    def forget_after_fork(self) -> None:
        """In a forked child: nothing is recorded here, and the files are the parent's."""
        self._history.forget_after_fork()

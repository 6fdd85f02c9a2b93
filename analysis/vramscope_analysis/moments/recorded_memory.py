"""The memory of one device over a recording: what was live when, and where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.moments.lifetimes import BEFORE, Lifetimes, lifetimes_of
from vramscope_analysis.moments.sources import Source, sources_of
from vramscope_analysis.moments.stack_names import StackNames
from vramscope_analysis.moments.step_ends import (
    Scope,
    StepEnd,
    optimizer_starts,
    scopes_of,
    step_ends,
)
from vramscope_analysis.snapshot import Action, Snapshot, Trace

MOST_FAILURES: Final = 100
_SIGNS = {
    Action.SEGMENT_ALLOC: 1,
    Action.SEGMENT_MAP: 1,
    Action.SEGMENT_FREE: -1,
    Action.SEGMENT_UNMAP: -1,
}


@dataclass(frozen=True, eq=False)
class RecordedMemory:
    """Everything that questions about moments are answered from.

    Args:
        snapshot: what was read.
        device: index of the device.
        told_steps: (step, time_us) of each end of a step, as the agent noted them.
    """

    snapshot: Snapshot
    device: int
    told_steps: Sequence[Sequence[int]] = ()

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        device: int | None = None,
        told_steps: Iterable[Sequence[int]] = (),
    ) -> RecordedMemory:
        """The memory of one device; without a number, of that with the most entries or segments.

        Raises:
            ValueError: the snapshot has nothing of this device, or nothing at all.
        """
        devices = snapshot.devices
        if not devices:
            raise ValueError("expected a snapshot with segments or trace entries, got an empty one")
        if device is None:
            device = max(devices, key=lambda index: _size(snapshot, index))
        if device not in devices:
            having = ", ".join(str(index) for index in devices)
            raise ValueError(f"expected a device of the snapshot ({having}), got {device}")
        return cls(snapshot, device, tuple(told_steps))

    @property
    def trace(self) -> Trace | None:
        """Its trace entries; None where there are none."""
        traces = self.snapshot.traces
        trace = traces[self.device] if self.device < len(traces) else None
        return trace if trace is not None and len(trace) else None

    @cached_property
    def lifetimes(self) -> Lifetimes:
        """Its blocks."""
        return lifetimes_of(self.snapshot, self.device)

    @property
    def entries(self) -> int:
        """How many trace entries there are."""
        return self.lifetimes.entries

    @property
    def last_moment(self) -> int:
        """The state at the end of the recording."""
        return self.entries - 1

    @cached_property
    def time_us(self) -> NDArray[np.int64]:
        """Time of each entry, never falling."""
        if self.trace is None:
            return np.zeros(0, np.int64)
        return np.maximum.accumulate(self.trace.time_us)

    @cached_property
    def has_history(self) -> bool:
        """Whether there is more than the end to look at: a ring of one entry tells nothing."""
        return self.entries > 1

    @cached_property
    def names(self) -> StackNames:
        """Names of its stacks."""
        return StackNames(self.snapshot)

    @cached_property
    def scopes(self) -> list[Scope]:
        """Stretches that the job or PyTorch named."""
        return scopes_of(self.snapshot, self.device)

    @cached_property
    def step_ends(self) -> list[StepEnd]:
        """Ends of the steps that lie within the recording."""
        return step_ends(self.snapshot, self.device, self.time_us, self.told_steps)

    @cached_property
    def _sources(self) -> tuple[NDArray[np.int32], list[Source]]:
        starts = optimizer_starts(self.scopes) or [end.time_us for end in self.step_ends]
        return sources_of(self.lifetimes, self.trace, self.names, self.time_us, starts)

    @property
    def source_of(self) -> NDArray[np.int32]:
        """Index of the source of each block."""
        return self._sources[0]

    @property
    def sources(self) -> list[Source]:
        """What allocated the blocks."""
        return self._sources[1]

    @property
    def has_stacks(self) -> bool:
        """Whether any block is known by its stack."""
        return any(source.stack >= 0 for source in self.sources)

    @cached_property
    def category_of(self) -> NDArray[np.int8]:
        """Category of each block."""
        categories = np.array([source.category for source in self.sources], np.int8)
        return categories[self.source_of] if len(categories) else np.zeros(0, np.int8)

    @cached_property
    def live_bytes(self) -> NDArray[np.int64]:
        """Live bytes at each moment: place 0 is before the first entry, i + 1 after entry i."""
        lifetimes = self.lifetimes
        changes = np.zeros(self.entries + 2, np.int64)
        # Exact: integers below 2**53 are exact as floats, and so are their sums here.
        born = np.bincount(lifetimes.born + 1, lifetimes.size, self.entries + 2)
        gone = np.bincount(lifetimes.completed + 1, lifetimes.size, self.entries + 2)
        changes += born.astype(np.int64) - gone.astype(np.int64)
        return np.cumsum(changes)[: self.entries + 1]

    @cached_property
    def reserved_bytes(self) -> NDArray[np.int64]:
        """Bytes of segments at each moment, placed as those of ``live_bytes``."""
        segments = self.snapshot.segments
        held = int(segments.total_size[segments.device == self.device].sum())
        changes = np.zeros(self.entries + 1, np.int64)
        if self.trace is not None:
            signs = np.zeros(256, np.int64)
            for action, sign in _SIGNS.items():
                signs[action] = sign
            changes[1:] = signs[self.trace.action] * self.trace.size
        changes[0] = max(held - int(changes.sum()), 0)
        return np.cumsum(changes)

    @cached_property
    def out_of_memory(self) -> list[tuple[int, int]]:
        """Entries at which a request was refused, and its bytes; of many the last."""
        if self.trace is None:
            return []
        entries = np.flatnonzero(self.trace.action == Action.OOM)[-MOST_FAILURES:]
        return list(zip(entries.tolist(), self.trace.size[entries].tolist(), strict=True))

    @cached_property
    def peak_moment(self) -> int:
        """The moment at which most was live, the first of several."""
        return int(np.argmax(self.live_bytes)) - 1

    def nearest_moment(self, time_us: int) -> int:
        """The last moment that is not later than a time."""
        return int(np.searchsorted(self.time_us, time_us, side="right")) - 1

    def clamped(self, moment: int) -> int:
        """A moment that exists."""
        return min(max(moment, BEFORE), self.last_moment)


def _size(snapshot: Snapshot, device: int) -> tuple[int, int]:
    entries = len(snapshot.traces[device]) if device < len(snapshot.traces) else 0
    return entries, int((snapshot.segments.device == device).sum())

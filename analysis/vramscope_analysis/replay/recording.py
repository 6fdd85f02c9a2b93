"""A recorded run of one device, ready to be replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.allocator import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    AllocatorSettings,
    Version,
    settings_from_snapshot,
)
from vramscope_analysis.replay.missing_actions import missing_actions
from vramscope_analysis.replay.steps import Annotation
from vramscope_analysis.snapshot import Action, Dicts, Snapshot, Trace

SEGMENT_CHANGES: Final = {
    Action.SEGMENT_ALLOC: 1,
    Action.SEGMENT_MAP: 1,
    Action.SEGMENT_FREE: -1,
    Action.SEGMENT_UNMAP: -1,
}
"""Actions by which memory comes from the device (1) and goes back (-1)."""


@dataclass(frozen=True, eq=False)
class Events:
    """Trace entries of one device as columns, in recorded order.

    Args:
        actions: :class:`~vramscope_analysis.snapshot.Action` values.
        addresses: of the block or segment; what the device had left for an ``oom``.
        sizes: bytes: as requested for blocks, real for segments, rounded for an ``oom``.
        streams: handle of the stream.
        times_us: microseconds since the epoch.
        pool_ids: (n, 2); None when the entries carry none (up to torch 2.11).
        stacks: index of the entry's stack, -1 without frames; equal frames have one index.
    """

    actions: NDArray[np.uint8]
    addresses: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    streams: NDArray[np.int64]
    times_us: NDArray[np.int64]
    pool_ids: NDArray[np.int64] | None
    stacks: NDArray[np.int32]

    @classmethod
    def from_trace(cls, trace: Trace) -> Events:
        """The columns that a replay needs; none is copied."""
        return cls(
            actions=trace.action,
            addresses=trace.address,
            sizes=trace.size,
            streams=trace.stream,
            times_us=trace.time_us,
            pool_ids=trace.pool_id if trace.has_pool_ids else None,
            stacks=trace.stack,
        )

    def __len__(self) -> int:
        return len(self.actions)

    @cached_property
    def segment_events(self) -> NDArray[np.int64]:
        """Positions of the entries by which memory came from the device or went back."""
        return np.flatnonzero(self.segment_signs)

    @cached_property
    def segment_signs(self) -> NDArray[np.int8]:
        """1 where an entry takes memory from the device, -1 where it gives some back, else 0."""
        signs = np.zeros(256, dtype=np.int8)
        for action, sign in SEGMENT_CHANGES.items():
            signs[action] = sign
        return signs[self.actions]

    @cached_property
    def reserved_changes(self) -> NDArray[np.int64]:
        """Bytes that each entry of :attr:`segment_events` adds to what is reserved."""
        positions = self.segment_events
        return self.sizes[positions] * self.segment_signs[positions]


@dataclass(frozen=True, eq=False)
class Recording:
    """Everything that a snapshot tells about the past of one device.

    Args:
        device: index of the device.
        events: its trace.
        segments: what was held at the end: PyTorch's structure, by address, without frames.
        settings: what the allocator was set to.
        recorded_settings: the same as the snapshot has it (``allocator_settings``).
        annotations: scopes that the job named, by time.
        versions: oldest and newest torch that writes such a snapshot.
    """

    device: int
    events: Events
    segments: list[dict[str, Any]]
    settings: AllocatorSettings
    recorded_settings: Mapping[str, Any]
    annotations: list[Annotation]
    versions: tuple[Version, Version]

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, device: int | None = None) -> Recording:
        """The trace of one device and what belongs to it.

        Args:
            snapshot: as read from a file.
            device: index; None is the device with the most trace entries.

        Raises:
            ValueError: the snapshot has no trace entries, of this device or at all, one that no
                allocator writes, or none of a kind that a replay needs; or settings that PyTorch
                never has.
        """
        lengths = [len(trace.action) for trace in snapshot.traces]
        if not any(lengths):
            raise ValueError("expected a recorded history, got a snapshot without trace entries")
        if device is None:
            device = lengths.index(max(lengths))
        if not 0 <= device < len(lengths) or not lengths[device]:
            having = ", ".join(str(index) for index, length in enumerate(lengths) if length)
            raise ValueError(f"expected a device with trace entries ({having}), got {device}")
        _check_requests(snapshot.traces[device])
        recording = cls(
            device=device,
            events=Events.from_trace(snapshot.traces[device]),
            segments=segments_of(snapshot, device),
            settings=_settings_of(snapshot),
            recorded_settings=snapshot.settings,
            annotations=annotations_of(snapshot, device),
            versions=possible_versions(snapshot),
        )
        _check_kinds(recording)
        return recording

    @property
    def version(self) -> Version:
        """The release to follow when nobody names one: the newest that writes such a snapshot."""
        return self.versions[1]

    @cached_property
    def reserved_at_start_bytes(self) -> int:
        """Bytes that were held before the first entry: what the entries do not account for.

        None if segments were freed while the snapshot was being taken, after its trace was: then
        less is held than the entries say.
        """
        held = sum(int(segment["total_size"]) for segment in self.segments)
        return max(held - int(self.events.reserved_changes.sum()), 0)

    @property
    def starts_empty(self) -> bool:
        """Whether the trace is complete from the first allocation on.

        Otherwise recording began late, or its ring wrapped.
        """
        return self.reserved_at_start_bytes == 0

    @cached_property
    def reserved_bytes(self) -> NDArray[np.int64]:
        """Bytes held after each of ``events.segment_events``."""
        return self.reserved_at_start_bytes + np.cumsum(self.events.reserved_changes)

    @property
    def peak_reserved_bytes(self) -> int:
        """Most bytes held at any time of the recording."""
        return max(self.reserved_at_start_bytes, int(self.reserved_bytes.max(initial=0)))


def _check_requests(trace: Trace) -> None:
    """An allocator is never asked for nothing: tensors without elements have no memory."""
    empty = np.flatnonzero(np.isin(trace.action, (Action.ALLOC, Action.OOM)) & (trace.size < 1))
    if len(empty):
        at = int(empty[0])
        raise ValueError(
            f"expected requests of at least 1 byte, got {int(trace.size[at])} at entry {at}"
        )


def _check_kinds(recording: Recording) -> None:
    """A replay needs every kind of entry but free_requested."""
    missing = missing_actions(
        recording.events, recording.segments, is_complete=recording.starts_empty
    )
    if missing:
        kinds = ", ".join(action.word for action in missing)
        raise ValueError(
            f"expected every kind of entry, got a trace without any {kinds}, though there must "
            "have been some; record without skip_actions"
        )


def _settings_of(snapshot: Snapshot) -> AllocatorSettings:
    try:
        return settings_from_snapshot(snapshot.settings)
    except ValueError as error:
        raise ValueError(f"allocator_settings: {error}") from None


def segments_of(snapshot: Snapshot, device: int) -> list[dict[str, Any]]:
    """Segments of one device in PyTorch's structure, without frames."""
    rows = np.flatnonzero(snapshot.segments.device == device)
    return Dicts(snapshot, frames=False).segments(rows)


def annotations_of(snapshot: Snapshot, device: int) -> list[Annotation]:
    """Scopes that ran on one device, by time; of every device if none names this one.

    What is not written as PyTorch does is left out.
    """
    plain = snapshot.annotations
    chosen = [entry for entry in plain if entry.get("device") == device] or plain
    annotations = [
        Annotation(name, stage, time_us)
        for entry in chosen
        for name, stage, time_us in [[entry.get(key) for key in ("name", "stage", "time_us")]]
        if isinstance(name, str) and isinstance(stage, str) and isinstance(time_us, int)
    ]
    return sorted(annotations, key=lambda annotation: annotation.time_us)


def possible_versions(snapshot: Snapshot) -> tuple[Version, Version]:
    """Oldest and newest torch that writes what this snapshot has and leaves out what it lacks.

    ``external_annotations`` came with 2.5, ``compile_context`` with 2.8,
    ``graph_capture_record_stream_reuse`` with 2.9, ``user_metadata`` with 2.10, the pool of
    trace entries with 2.12, ``max_round_threshold`` of pinned memory with 2.13 and
    ``host_segments`` with 2.14.
    """
    keys = {key for trace in snapshot.traces for key in trace.keys}
    signs: list[tuple[Version, bool]] = [
        ((2, 8), "compile_context" in keys),
        ((2, 9), "graph_capture_record_stream_reuse" in snapshot.settings),
        ((2, 10), "user_metadata" in keys),
        ((2, 12), any(trace.has_pool_ids for trace in snapshot.traces)),
        ((2, 13), any("max_round_threshold" in key for key in snapshot.settings)),
        ((2, 14), bool(snapshot.host_segments) or snapshot.host_trace is not None),
    ]
    # A job without named scopes has no annotations, in any version: they say something if there.
    oldest: Version = (2, 5) if snapshot.annotations else OLDEST_VERSION
    newest: Version = NEWEST_VERSION
    for version, is_there in signs:
        if is_there:
            oldest = version
    for version, is_there in reversed(signs):
        if is_there or version <= oldest:
            break
        newest = (version[0], version[1] - 1)
    return oldest, newest

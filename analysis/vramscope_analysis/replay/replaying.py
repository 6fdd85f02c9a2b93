"""Replays a recorded job as it was, and reports whether the model did the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vramscope_analysis.allocator import Version
from vramscope_analysis.allocator.version_rules import tie_break_of
from vramscope_analysis.replay.capacity import Capacity
from vramscope_analysis.replay.capacity_inference import infer_capacity, search_capacity
from vramscope_analysis.replay.comparison import Mismatch
from vramscope_analysis.replay.past.initial_state import InitialState
from vramscope_analysis.replay.recorded_replay import Progress, RecordedReplay
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action

RELEASES_TO_TRY: Final[tuple[Version, ...]] = ((2, 11), (2, 12), (2, 14))
"""The newest release of each way to choose among free blocks of equal size."""


@dataclass(frozen=True)
class ReplayReport:
    """A recorded job, replayed as it was, against its trace.

    Args:
        events: entries of the trace.
        segment_events: entries by which memory came from the device or went back.
        segment_mismatches: of these, recorded without the replay making it, or the reverse.
        blocks: requests that were granted.
        block_mismatches: blocks that got another address, or that only one side granted.
        unknown_frees: frees of blocks that the replay does not have.
        final_mismatches: segments that differ at the end, in anything.
        first_mismatches: the first of all these.
        version: release that was followed.
        fitting_versions: other releases, best first, under which fewer segment events and blocks
            differ; tried only if something differs.
        capacity: what bound the job.
        counters: ``memory_stats()`` of the replay at the end.
        recorded_peak_reserved_bytes: most that was reserved, by the trace.
        ooms: recorded failures.
        initial: what was held when the recording begins; None: nothing, the trace is complete.
    """

    events: int
    segment_events: int
    segment_mismatches: int
    blocks: int
    block_mismatches: int
    unknown_frees: int
    final_mismatches: int
    first_mismatches: list[Mismatch]
    version: Version
    fitting_versions: list[Version]
    capacity: Capacity
    counters: dict[str, Any]
    recorded_peak_reserved_bytes: int
    ooms: int
    initial: InitialState | None

    @property
    def is_exact(self) -> bool:
        """Whether nothing differs at all."""
        return not (
            self.segment_mismatches
            or self.block_mismatches
            or self.unknown_frees
            or self.final_mismatches
        )

    @property
    def peak_reserved_bytes(self) -> int:
        """Most that was reserved, by the replay."""
        return int(self.counters["reserved_bytes"]["all"]["peak"])

    @property
    def peak_allocated_bytes(self) -> int:
        """Most that blocks took, by the replay."""
        return int(self.counters["allocated_bytes"]["all"]["peak"])


def replay_recorded(
    recording: Recording,
    *,
    version: Version | None = None,
    capacity_bytes: int | None = None,
    limit_bytes: int | None = None,
    progress: Progress | None = None,
) -> ReplayReport:
    """Replay a job under its recorded settings and compare everything on the way.

    Args:
        recording: the job.
        version: torch release to follow; None is the newest that writes such a snapshot,
            or, if that does not fit, another one under which nothing is misplaced.
        capacity_bytes: what the device had.
        limit_bytes: the process's own limit below that. If neither is given, both are what the
            recording shows; if one is, the other is none.
        progress: called with (entries done, entries in all).

    Raises:
        ValueError: a version whose rules are not modelled.
    """
    followed = recording.version if version is None else version
    capacity = infer_capacity(
        recording, capacity_bytes=capacity_bytes, limit_bytes=limit_bytes, version=followed
    )
    replay = RecordedReplay(recording, capacity, version=followed)
    replay.advance(progress=progress)
    if capacity.source == "inferred" and replay.comparison.first_segments is not None:
        better = search_capacity(recording, capacity, followed)
        if better != capacity:
            capacity = better
            replay = RecordedReplay(recording, capacity, version=followed)
            replay.advance(progress=progress)
    fitting = _fitting_replays(replay, capacity) if replay.misplaced else []
    if version is None and fitting and not fitting[0].misplaced:
        replay, fitting = fitting[0], []
    comparison, events = replay.comparison, recording.events
    return ReplayReport(
        events=len(events),
        segment_events=len(events.segment_events),
        segment_mismatches=comparison.segment_mismatches,
        blocks=int(np.count_nonzero(events.actions == Action.ALLOC)),
        block_mismatches=comparison.block_mismatches,
        unknown_frees=replay.unknown_frees,
        final_mismatches=comparison.final_mismatches,
        first_mismatches=comparison.first,
        version=replay.model.version,
        fitting_versions=[other.model.version for other in fitting],
        capacity=capacity,
        counters=replay.model.memory_stats(),
        recorded_peak_reserved_bytes=recording.peak_reserved_bytes,
        ooms=int(np.count_nonzero(events.actions == Action.OOM)),
        initial=replay.initial,
    )


def _fitting_replays(replay: RecordedReplay, capacity: Capacity) -> list[RecordedReplay]:
    """The replay under other tie-breaks, best first, where less differs.

    The keys of a snapshot rule out older releases; a key that is missing proves nothing.
    """
    recording, followed = replay.recording, replay.model.version
    oldest, _newest = recording.versions
    found: list[RecordedReplay] = []
    for version in RELEASES_TO_TRY:
        if version >= oldest and tie_break_of(version) is not tie_break_of(followed):
            other = RecordedReplay(recording, capacity, version=version)
            other.advance()
            if other.misplaced < replay.misplaced:
                found.append(other)
    return sorted(found, key=lambda other: other.misplaced)

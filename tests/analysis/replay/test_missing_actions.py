from __future__ import annotations

from typing import Any

import pytest

from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.replay.missing_actions import missing_actions
from vramscope_analysis.replay.recording import Events, segments_of
from vramscope_analysis.snapshot import Action, Snapshot

PLAIN = AllocatorSettings()
EXPANDABLE = AllocatorSettings(expandable_segments=True)
SEGMENTS = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")


def job(settings: AllocatorSettings = PLAIN) -> RecordedJob:
    """Blocks and segments that come and go, twice at each address."""
    job = RecordedJob(settings)
    for _ in range(2):
        job.free(job.malloc(30 * MIB), job.malloc(5000))
        job.model.empty_cache()
    job.malloc(5000)
    return job


def missing(
    job: RecordedJob, *skipped: str, first: int = 0, is_complete: bool = True
) -> list[Action]:
    plain: dict[str, Any] = job.plain()
    entries = [entry for entry in job.entries[first:] if entry["action"] not in skipped]
    snapshot = Snapshot.from_plain({**plain, "device_traces": [entries]})
    events = Events.from_trace(snapshot.traces[0])
    return missing_actions(events, segments_of(snapshot, 0), is_complete=is_complete)


@pytest.mark.parametrize("settings", [PLAIN, EXPANDABLE])
def test_a_trace_lacks_nothing_wherever_it_begins(settings: AllocatorSettings) -> None:
    recorded = job(settings)
    assert missing(recorded) == []
    for first in range(1, len(recorded.entries) + 1):
        assert missing(recorded, first=first, is_complete=False) == []


@pytest.mark.parametrize(
    ("skipped", "expected"),
    [
        (["alloc"], [Action.ALLOC]),
        (["free_completed"], [Action.FREE_COMPLETED]),
        (["free_requested"], []),
        (["free_requested", "free_completed"], [Action.FREE_COMPLETED]),
        (["segment_alloc", "segment_map"], [Action.SEGMENT_ALLOC]),
        (["segment_free", "segment_unmap"], [Action.SEGMENT_FREE]),
        (SEGMENTS, [Action.SEGMENT_ALLOC]),
    ],
)
@pytest.mark.parametrize("settings", [PLAIN, EXPANDABLE])
def test_a_kind_that_was_skipped_is_named(
    settings: AllocatorSettings, skipped: list[str], expected: list[Action]
) -> None:
    assert missing(job(settings), *skipped) == expected


def test_frees_alone_may_be_of_blocks_from_before_the_trace() -> None:
    job = RecordedJob()
    blocks = [job.malloc(5000), job.malloc(5000)]
    job.free(*blocks)
    frees = len(job.entries) - 4

    assert missing(job, first=frees, is_complete=False) == []
    # Nothing was there before a complete one.
    assert missing(job, first=frees, is_complete=True) == [Action.ALLOC]


def test_segments_that_never_went_back_may_be_older_than_the_trace() -> None:
    job = RecordedJob()
    job.free(job.malloc(30 * MIB))

    assert missing(job, "segment_alloc", is_complete=False) == []

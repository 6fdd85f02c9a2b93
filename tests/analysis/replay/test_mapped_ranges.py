from __future__ import annotations

from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.replay.mapped_ranges import mapped_ranges


def test_pages_without_a_gap_are_one_range() -> None:
    job = RecordedJob(AllocatorSettings(expandable_segments=True))
    small = job.malloc(512)
    first = job.malloc(30 * MIB)
    start = first.address
    job.free(first, job.malloc(50 * MIB))
    job.model.empty_cache()

    ranges = mapped_ranges(job.recording().events)

    # One small page; two pages of 20 MiB, then two more, which are not mapped any longer.
    assert ranges == [
        (small.address, small.address + 2 * MIB),
        (start, start + 80 * MIB),
    ]


def test_a_job_without_expandable_segments_has_none() -> None:
    job = RecordedJob()
    job.malloc(30 * MIB)

    assert mapped_ranges(job.recording().events) == []

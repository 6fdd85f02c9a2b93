from __future__ import annotations

import random

import pytest

from tests.support.allocator_traces import load_trace
from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings, Block
from vramscope_analysis.allocator.version_rules import TieBreak, tie_break_of
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.replay.replaying import RELEASES_TO_TRY, replay_recorded
from vramscope_analysis.snapshot import Snapshot


def test_a_report_says_that_everything_was_made_again() -> None:
    report = replay_recorded(load_trace("oom__default").recording)

    assert report.is_exact
    assert (report.events, report.segment_events, report.blocks) == (42403, 231, 14059)
    assert (report.version, report.fitting_versions) == ((2, 11), [])
    assert report.peak_reserved_bytes == report.recorded_peak_reserved_bytes == 3156213760
    assert report.peak_allocated_bytes == 2724212224
    assert (report.ooms, report.counters["num_ooms"]) == (1, 1)
    assert report.capacity.limit_bytes == 3 << 30
    assert report.initial is None
    assert report.first_mismatches == []


def busy_job(version: tuple[int, int], seed: int = 1) -> RecordedJob:
    """A job in which the tie-break among free blocks of equal size matters."""
    job = RecordedJob(version=version)
    chosen = random.Random(seed)
    live: list[Block] = []
    for turn in range(600):
        if not turn % 50:
            job.model.empty_cache()  # so that later segments come to lie before earlier ones
        if len(live) > 20:
            job.free(live.pop(chosen.randrange(len(live))))
        live.append(job.malloc(chosen.choice((3, 4, 5, 11)) * MIB))
    return job


@pytest.mark.parametrize("version", [(2, 11), (2, 12), (2, 14)])
def test_the_release_that_recorded_is_found_by_what_fits(version: tuple[int, int]) -> None:
    recording = busy_job(version).recording()

    for followed in RELEASES_TO_TRY:
        report = replay_recorded(recording, version=followed)

        if followed == version:
            assert report.is_exact
            assert report.fitting_versions == []
        else:
            assert not report.is_exact
            assert report.fitting_versions[0] == version


@pytest.mark.parametrize("version", [(2, 12), (2, 14)])
def test_without_a_told_release_the_one_that_fits_is_followed(version: tuple[int, int]) -> None:
    report = replay_recorded(busy_job(version).recording())

    assert report.is_exact
    assert tie_break_of(report.version) is tie_break_of(version)
    assert report.fitting_versions == []


def test_a_release_that_lacks_a_key_of_the_snapshot_is_not_named() -> None:
    recording = busy_job((2, 12)).recording()
    assert recording.versions[0] == (2, 12)

    report = replay_recorded(recording, version=(2, 14))

    assert report.fitting_versions == [(2, 12)]


def test_a_release_of_each_tie_break_is_tried() -> None:
    assert {tie_break_of(version) for version in RELEASES_TO_TRY} == set(TieBreak)


def test_mismatches_are_counted_and_the_first_described() -> None:
    job = RecordedJob()
    kept = job.malloc(3 * MIB)
    job.malloc(40 * MIB)
    plain = job.plain()
    del plain["device_traces"][0][2]  # the second segment_alloc
    plain["segments"] = [s for s in plain["segments"] if s["address"] <= kept.address]

    report = replay_recorded(Recording.from_snapshot(Snapshot.from_plain(plain)))

    assert not report.is_exact
    assert (report.segment_mismatches, report.final_mismatches) == (1, 1)
    assert report.fitting_versions == []  # no other release explains it either
    assert {mismatch.kind for mismatch in report.first_mismatches} == {"segment", "block", "final"}


def test_a_flush_that_no_limit_explains_is_taken_for_a_call() -> None:
    job = RecordedJob(limit_bytes=1000 * MIB)
    job.free(job.malloc(980 * MIB))
    job.model.empty_cache()  # and at once a request beyond the limit, which the cache would serve
    job.malloc(970 * MIB)
    job.free(job.malloc(20 * MIB))
    with pytest.raises(Exception, match="expected"):
        job.malloc(40 * MIB)

    report = replay_recorded(job.recording())

    assert report.is_exact
    assert report.capacity.source == "inferred"
    assert report.capacity.asked_flushes == {4}
    assert report.counters["num_alloc_retries"] == 1


def test_given_memory_is_believed() -> None:
    job = RecordedJob(AllocatorSettings(), limit_bytes=100 * MIB)
    job.malloc(60 * MIB)

    report = replay_recorded(job.recording(), capacity_bytes=80 * MIB, limit_bytes=70 * MIB)

    assert report.is_exact
    assert report.capacity.source == "given"
    assert report.capacity.allowed_bytes == 70 * MIB


def test_a_recording_without_its_start_is_replayed_from_what_is_known() -> None:
    job = busy_job((2, 11))
    plain = job.plain()
    plain["device_traces"][0] = plain["device_traces"][0][-500:]

    report = replay_recorded(Recording.from_snapshot(Snapshot.from_plain(plain)))

    assert report.initial is not None
    assert report.segment_mismatches == 0
    assert report.block_mismatches == 0

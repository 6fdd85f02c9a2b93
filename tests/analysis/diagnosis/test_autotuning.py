"""Kernels chosen by trial (cudnn.benchmark, autotuners) are no leak, thrash or fragmentation.

Each new shape has large workspaces for a step or two: in the warm-up of a job, and whenever a size
comes that was not seen before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.made_ranks import GIB, MIB, made_rank
from tests.support.recorded_forecasts import recorded
from tests.support.recorded_workload import FOLDER, RecordedWorkload
from vramscope_analysis.diagnosis.cycle_growth import cycle_growth
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.fragmentation import fragmentation
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.near_oom import near_oom
from vramscope_analysis.diagnosis.retention import retention
from vramscope_analysis.diagnosis.thrash import thrash
from vramscope_analysis.evidence.run_evidence import RankEvidence

JUDGES = (leak, cycle_growth, retention, thrash, fragmentation, near_oom)


def told(rank: RankEvidence) -> list[Finding]:
    return [finding for judge in JUDGES for finding in judge(rank)]


ROOMY = RecordedWorkload.read(FOLDER / "autotuned.npz")
TIGHT = recorded("autotuned_tight")


@pytest.mark.parametrize("workload", [ROOMY, TIGHT], ids=["roomy", "tight"])
def test_a_recorded_job_whose_kernels_are_tried_is_left_in_peace(
    workload: RecordedWorkload,
) -> None:
    steps = workload.steps
    # It is what it says: workspaces many times as large as what is there in other steps, which go.
    peaks = steps.numbers("step.peak_allocated_bytes")
    assert np.nanmax(peaks) > 10 * np.nanmedian(peaks)
    assert (steps.last("num_device_free") or 0) > 20
    for row in range(5, len(steps) + 1, 5):
        (rank,) = workload.run(row).ranks
        assert told(rank) == [], row


def test_the_tight_one_did_fail_and_flush() -> None:
    steps = TIGHT.steps
    assert (steps.last("num_ooms") or 0) > 50
    assert (steps.last("num_alloc_retries") or 0) > 50


def tuned(shapes: int, *, fails: bool, empties: bool, every: int = 12) -> RankEvidence:
    """A new shape every few steps, whose first step flushes for its workspaces."""
    steps = shapes * every
    number = np.arange(1, steps + 1)
    new = (number % every == 1) & (number > 1)
    flushes = np.cumsum(new * 2)
    columns: dict[str, Any] = {
        "allocated_bytes.all.current": 2 * GIB + (number // every) * 0,
        "allocation.all.current": 100,
        "reserved_bytes.all.current": 3 * GIB,
        "step.peak_allocated_bytes": np.where(new, 15 * GIB, 2 * GIB + 512 * MIB),
        "step.peak_active_bytes": np.where(new, 15 * GIB, 2 * GIB + 512 * MIB),
        "step.peak_reserved_bytes": np.where(new, 16 * GIB, 3 * GIB),
        "inactive_split_bytes.all.current": 256 * MIB,
        "num_alloc_retries": flushes,
        "num_ooms": np.cumsum(new * fails),
        "num_sync_all_streams": flushes + np.cumsum(new * empties),
        "num_device_alloc": np.cumsum(new * 6),
        "num_device_free": np.cumsum(new * 6),
        "step.duration_us": np.where(new, 900_000, 100_000),
    }
    return made_rank(steps, columns=columns, total_bytes=16 * GIB)


@pytest.mark.parametrize(("fails", "empties"), [(True, False), (False, True), (True, True)])
def test_flushes_for_workspaces_of_new_shapes_are_no_thrash(fails: bool, empties: bool) -> None:
    rank = tuned(12, fails=fails, empties=empties)
    for row in range(5, len(rank.steps) + 1):
        assert told(replace(rank, steps=rank.steps.before(row))) == [], row


def test_flushes_that_come_with_neither_are_thrash_as_before() -> None:
    assert [each.kind for each in thrash(tuned(12, fails=False, empties=False))] == ["thrash"]


def test_a_job_that_flushes_in_other_steps_too_is_told_of_those() -> None:
    rank = tuned(12, fails=True, empties=True)
    extra = np.cumsum(np.arange(len(rank.steps)) % 5 == 3)
    columns = dict(rank.steps.columns)
    for name in ("num_alloc_retries", "num_sync_all_streams"):
        columns[name] = columns[name] + extra
    (finding,) = thrash(replace(rank, steps=replace(rank.steps, columns=columns)))
    # A fifth of the last hundred steps, without the eight of new shapes and their two flushes each.
    assert 16 <= finding.evidence["flushes"] <= 20

"""Peaks against batch sizes: measured where sizes differ, else not known."""

from __future__ import annotations

from typing import Any

from tests.support.made_ranks import GIB, MIB, made_rank, stretch
from vramscope_analysis.diagnosis.batch_fit import BatchFit, batch_fit


def job(sizes: list[int], extra: int = 0, **more: Any) -> BatchFit | None:
    peaks = [10 * GIB + size * 512 * MIB for size in sizes]
    peaks[-1] += extra
    columns = {"user.batch_size": sizes, "step.peak_allocated_bytes": peaks}
    return batch_fit(made_rank(len(sizes), columns=columns, **more))


def test_two_sizes_give_the_cost_of_a_sample() -> None:
    fit = batch_fit(
        made_rank(
            10,
            columns={
                "user.batch_size": [8, 8, 8, 8, 8, 16, 16, 16, 16, 16],
                "step.peak_allocated_bytes": [14 * GIB] * 5 + [18 * GIB] * 5,
            },
        )
    )
    assert fit is not None
    assert abs(fit.bytes_per_sample - 512 * MIB) <= 1
    assert (fit.smallest, fit.largest_tried) == (8, 16)


def test_one_size_tells_nothing_nor_does_one_step_of_another() -> None:
    assert job([8] * 20) is None
    assert job([8] * 20 + [16]) is None
    assert job([8] * 10 + [9] * 10) is None  # too near to each other


def test_peaks_that_lie_on_no_line_are_not_fitted() -> None:
    sizes = [8] * 5 + [16] * 5 + [32] * 5
    assert job(sizes) is not None
    assert job(sizes, extra=30 * GIB) is None


def test_an_evaluation_does_not_count() -> None:
    sizes = [8] * 5 + [16] * 5 + [32] * 5
    assert job(sizes, extra=30 * GIB, stretches=[stretch("eval", 14)]) is not None


def test_what_the_agent_has_seen_counts_more_than_what_the_job_logs() -> None:
    columns: dict[str, Any] = {
        "user.batch_size": 64,
        "step.batch_size": [8] * 5 + [16] * 5,
        "step.peak_allocated_bytes": [14 * GIB] * 5 + [18 * GIB] * 5,
    }
    fit = batch_fit(made_rank(10, columns=columns))
    assert fit is not None
    assert fit.largest_tried == 16

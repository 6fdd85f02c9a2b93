"""A forecast holds what it says: the end comes between its bounds; else it keeps silent."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.support.allocator_traces import TRACES, load_trace
from tests.support.step_floors import BASE, BLOCKS, GIB, KIB, MIB, at, leaking, rank_of, steps_of
from vramscope_analysis.diagnosis.floors import floors_of
from vramscope_analysis.diagnosis.forecast import Forecast, forecast_of
from vramscope_analysis.diagnosis.trend import growth_of
from vramscope_analysis.evidence.run_evidence import RankEvidence


def forecast(rank: RankEvidence, *, is_confirmed: bool = False) -> Forecast | None:
    growth = growth_of(floors_of(rank.steps))
    return None if growth is None else forecast_of(rank, growth, is_confirmed=is_confirmed)


def said(rank: RankEvidence, **how: bool) -> Forecast | None:
    found = forecast(rank, **how)
    return found if found is not None and found.is_worth_saying else None


def test_the_end_of_an_even_leak_is_told_to_a_few_percent() -> None:
    # 512 MiB of base, 256 of activations, 1 MiB a step from step 51 on: full at step 1331.
    found = said(replace(at(leaking(MIB, steps=2000), 600), total_bytes=2 * GIB))
    assert found is not None
    assert 600 + found.early_steps <= 1331 <= 600 + found.late_steps
    assert found.late_steps - found.early_steps < 100
    assert found.early_s == pytest.approx(found.early_steps * 0.01, rel=0.05)
    assert found.words == "Out of memory in 7 to 8 seconds."


def test_what_may_come_with_the_next_step_has_no_lower_bound() -> None:
    rank = replace(at(leaking(MIB, steps=2000), 1330), total_bytes=2 * GIB)
    slow = replace(rank.steps, time_ns=rank.steps.time_ns * 321)
    found = said(replace(rank, steps=slow))
    assert found is not None
    assert found.early_steps == 0
    assert 6 < found.late_s < 10
    assert found.words == f"Out of memory in less than {math.ceil(found.late_s)} seconds."


@pytest.mark.parametrize("noise_mib", [1, 60, 200])
@pytest.mark.parametrize("slope", [256 * KIB, MIB, 5 * MIB])
def test_whenever_it_is_said_the_end_comes_between_its_bounds(noise_mib: int, slope: int) -> None:
    rng = np.random.default_rng(noise_mib)
    number = steps_of(6000)
    kept = np.maximum(number - 40, 0)
    floor = BASE + kept * slope
    peak = floor + rng.integers(0, noise_mib, len(number)) * MIB + 100 * MIB
    limit = 2 * GIB
    end = int(np.argmax(peak > limit))
    rank = rank_of(
        floor, BLOCKS + kept, columns={"step.peak_allocated_bytes": peak}, total_bytes=limit
    )
    told = right = 0
    for rows in range(60, end, max(end // 60, 1)):
        found = said(at(rank, rows))
        if found is not None:
            told += 1
            right += rows + found.early_steps <= end + 2 <= rows + found.late_steps + 4
    assert told > 0
    assert right >= 0.9 * told


def test_what_is_far_away_for_what_was_seen_is_not_said() -> None:
    assert forecast(replace(at(leaking(MIB), 120), total_bytes=80 * GIB)) is not None
    assert said(replace(at(leaking(MIB), 120), total_bytes=80 * GIB)) is None


def test_who_knows_what_grows_may_look_further_ahead() -> None:
    rank = replace(at(leaking(MIB), 120), total_bytes=6 * GIB)
    assert said(rank) is None
    assert said(rank, is_confirmed=True) is not None


def test_a_day_ahead_is_too_far() -> None:
    slow = replace(leaking(MIB, steps=400), total_bytes=2 * GIB)
    assert said(slow) is not None
    rows = replace(slow.steps, time_ns=slow.steps.time_ns * 10**5)
    assert said(replace(slow, steps=rows)) is None


def test_without_a_limit_there_is_none() -> None:
    assert forecast(leaking(MIB)) is None


def test_a_lower_cap_counts() -> None:
    rank = replace(at(leaking(MIB), 300), total_bytes=80 * GIB, limit_bytes=GIB + 512 * MIB)
    found = said(rank)
    assert found is not None
    assert found.limit_bytes == GIB + 512 * MIB


def recorded(name: str, limit_bytes: int) -> RankEvidence:
    steps = load_trace(name).steps
    floor = [row["allocated_bytes.all.current"] for row in steps]
    peak = [row["allocated_bytes.all.peak"] for row in steps]
    return rank_of(
        floor,
        first_step=0,
        columns={"step.peak_allocated_bytes": peak},
        total_bytes=limit_bytes,
    )


def test_a_recorded_leak_is_forecast_as_it_went_on() -> None:
    steps = load_trace("leak__default").steps
    peaks = [row["allocated_bytes.all.peak"] for row in steps]
    limit = peaks[38]
    rank = recorded("leak__default", limit)
    end = next(row for row, peak in enumerate(peaks) if peak >= limit)
    found = [(rows, said(at(rank, rows))) for rows in range(33, end)]
    told = [(rows, each) for rows, each in found if each is not None]
    assert told
    for rows, each in told:
        assert each.early_steps <= end - (rows - 1) <= each.late_steps


@pytest.mark.parametrize("name", [name for name in TRACES if name != "leak__default"])
def test_recorded_runs_without_a_leak_are_never_forecast_to_end(name: str) -> None:
    rank = recorded(name, 512 * MIB)
    assert all(forecast(at(rank, rows)) is None for rows in range(1, len(rank.steps) + 1))

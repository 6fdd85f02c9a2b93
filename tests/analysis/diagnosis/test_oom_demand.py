"""What steps needed is measured from their rows, and a trend is one only where there is one."""

from __future__ import annotations

import numpy as np

from tests.support.made_ooms import MIB, STEP_NS, made_oom, step_rows
from vramscope_analysis.diagnosis.oom_demand import Demand
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch


def demand_of(rows: Rows) -> Demand:
    return Demand.of(made_oom(rows))


def test_level_steps_have_a_usual_peak_and_no_growth() -> None:
    demand = demand_of(step_rows([300, *[500] * 20]))
    assert (demand.steps, demand.usual_peak_bytes) == (21, 500 * MIB)
    assert demand.highest_moving_bytes == 400 * MIB
    assert (demand.kept, demand.growing) == (None, None)


def test_gradients_that_are_dropped_are_no_part_of_what_stays() -> None:
    rows = step_rows([500] * 10, 100, **{"category.gradients_bytes": 30 * MIB})
    assert demand_of(rows).constant_bytes == 100 * MIB  # not known whether they are kept
    rows = step_rows(
        [500] * 10,
        100,
        **{"category.gradients_bytes": 30 * MIB, "category.gradients_kept_bytes": 10 * MIB},
    )
    demand = demand_of(rows)
    assert (demand.constant_bytes, demand.gradients_bytes) == (80 * MIB, 30 * MIB)


def test_floors_that_rise_steadily_are_growth() -> None:
    floors = [100, 100, 100, *(100 + 5 * n for n in range(30))]
    kept = demand_of(step_rows([f + 300 for f in floors], floors)).kept
    assert kept is not None
    assert not kept.is_jump
    assert 4.5 * MIB < kept.per_step < 5.5 * MIB
    assert kept.since_step is not None
    assert 4 <= kept.since_step <= 12


def test_what_came_at_once_and_stayed_is_a_jump() -> None:
    floors = [100] * 20 + [180] * 10
    kept = demand_of(step_rows([400] * 30, floors)).kept
    assert kept is not None
    assert (kept.is_jump, kept.since_step, kept.bytes) == (True, 21, 80 * MIB)


def test_one_high_floor_at_the_end_is_none() -> None:
    floors = [100, 103, 101, 104, 102, 100, 103, 101, 102, 100, 103, 130]
    assert demand_of(step_rows([400] * 12, floors)).kept is None


def test_a_sawtooth_is_no_growth() -> None:
    floors = [100 + 10 * (n % 7) for n in range(40)]
    assert demand_of(step_rows([400] * 40, floors)).kept is None


def test_peaks_that_grow_while_floors_do_not_are_growing_demand() -> None:
    growing = demand_of(step_rows([200 + 20 * n for n in range(30)])).growing
    assert growing is not None
    assert round(growing.per_step / MIB) == 20


def test_peaks_that_jump_about_are_none() -> None:
    peaks = np.random.default_rng(0).uniform(200, 600, 60)
    demand = demand_of(step_rows(list(peaks)))
    assert demand.growing is None
    assert demand.lowest_peak_bytes is not None
    assert demand.highest_peak_bytes is not None
    assert demand.lowest_peak_bytes < demand.highest_peak_bytes


def test_steps_with_an_evaluation_in_them_do_not_count() -> None:
    rows = step_rows([300] * 10 + [900] + [300] * 5)
    report = made_oom(rows)
    assert Demand.of(report).highest_peak_bytes == 900 * MIB
    stretch = Stretch("eval", 10 * STEP_NS + 5, 11 * STEP_NS - 5, 10)
    rank = RankEvidence(0, steps=rows, stretches=(stretch,))
    assert Demand.of(report, rank).highest_peak_bytes == 300 * MIB
    samples = Rows(np.array([10 * STEP_NS + 7]), {"phase": np.array([1])})
    assert Demand.of(made_oom(rows, samples=samples)).highest_peak_bytes == 300 * MIB


def test_rows_after_the_failure_and_of_another_life_do_not_count() -> None:
    report = made_oom(step_rows([300] * 5))
    later = RankEvidence(0, steps=step_rows([300] * 5 + [900] * 20))
    assert Demand.of(report, later).highest_peak_bytes == 300 * MIB
    rows = step_rows([900] * 4 + [300] * 6)
    assert rows.number is not None
    again = Rows(rows.time_ns, rows.columns, np.array([1, 2, 3, 4, 1, 2, 3, 4, 5, 6]))
    demand = Demand.of(made_oom(again))
    assert (demand.highest_peak_bytes, demand.floor_bytes) == (300 * MIB, 100 * MIB)


def test_before_the_first_step_only_what_modules_have_is_known() -> None:
    demand = Demand.of(made_oom())
    assert (demand.is_first_step, demand.constant_bytes) == (True, None)
    told = {"category.parameters_bytes": 50, "category.buffers_bytes": 7}
    demand = Demand.of(made_oom(by_category=told))
    assert (demand.constant_bytes, demand.gradients_bytes, demand.has_gradients) == (57, 50, False)


def test_a_job_whose_rows_are_lost_is_not_in_its_first_step() -> None:
    assert not Demand.of(made_oom(step=40)).is_first_step


def test_the_batch_is_known_if_it_was_the_same_for_some_steps() -> None:
    def batch(*told: float) -> int | None:
        return demand_of(step_rows([300] * len(told), 100, **{"user.batch_size": told})).batch

    assert batch(32, 16, 16, 16, 16, np.nan, 16) == 16
    assert batch(16, 16, 16, 16, 32) is None
    assert batch(np.nan, np.nan) is None

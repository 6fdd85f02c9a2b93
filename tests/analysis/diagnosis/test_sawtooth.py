"""Falls that come as objects in cycles are freed are told from falls that do not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.step_floors import BASE, MIB, STEP_NS, rank_of, steps_of
from vramscope_analysis.diagnosis.floors import floors_of
from vramscope_analysis.diagnosis.sawtooth import Sawtooth, last_collection_step, sawtooth_of
from vramscope_analysis.evidence.columns import Rows


def samples_of(
    collected_at: list[int], *, steps: int = 400, every_steps: int = 10, young: bool = False
) -> Rows:
    """Samples between the ends of steps; objects in cycles are freed within some steps."""
    number = np.arange(0, steps + every_steps, every_steps, dtype=np.int64)
    count = np.searchsorted(np.array(sorted(collected_at)), number, side="right")
    columns = {"gc.collected": 50 * count, "gc.full_collections": count * (not young)}
    return Rows(number * STEP_NS + STEP_NS // 3, columns, number)


def teeth(period: int, *, steps: int = 400, rise: int = MIB) -> Rows:
    return rank_of(BASE + (steps_of(steps) % period) * rise).steps


def found(steps: Rows, samples: Rows) -> Sawtooth | None:
    return sawtooth_of(floors_of(steps), samples)


def test_falls_with_collections_are_cycles() -> None:
    # Steps are numbered from 1: the floor falls at the end of 91, 181, 271, 361.
    sawtooth = found(teeth(90), samples_of([90, 180, 270, 360]))
    assert sawtooth is not None
    assert sawtooth.falls == (91, 181, 271, 361)
    assert (sawtooth.top_bytes, sawtooth.period_steps) == (89 * MIB, 90)
    assert sawtooth.held_bytes == 39 * MIB
    assert sawtooth.chance < 0.001
    assert not sawtooth.is_automatic
    young = found(teeth(90), samples_of([90, 180, 270, 360], young=True))
    assert young is not None
    assert young.is_automatic


def test_falls_between_collections_are_not() -> None:
    assert found(teeth(90), samples_of([45, 135, 225, 315])) is None


def test_where_it_collects_all_the_time_falls_say_nothing() -> None:
    assert found(teeth(90), samples_of(list(range(0, 400, 12)))) is None


def test_where_small_cycles_are_freed_all_the_time_full_collections_tell() -> None:
    samples = samples_of([90, 180, 270, 360])
    busy = {**samples.columns, "gc.collected": np.arange(len(samples)) * 8}
    sawtooth = found(teeth(90), Rows(samples.time_ns, busy, samples.number))
    assert sawtooth is not None
    assert (sawtooth.falls, sawtooth.is_automatic) == ((91, 181, 271, 361), False)


def test_one_fall_is_enough_if_collections_are_rare() -> None:
    steps = rank_of(BASE + np.where(steps_of(400) < 300, steps_of(400), 0) * MIB).steps
    assert found(steps, samples_of([300])) is not None
    assert found(steps, samples_of([100, 200, 300])) is None


def test_a_model_that_came_and_went_is_no_tooth() -> None:
    floor = BASE + ((steps_of(400) > 100) & (steps_of(400) < 300)) * 400 * MIB
    assert found(rank_of(floor).steps, samples_of([300])) is None


def test_what_has_not_fallen_for_long_is_over() -> None:
    floor = BASE + np.where(steps_of(4000) < 180, steps_of(4000) % 90, 0) * MIB
    assert found(rank_of(floor).steps, samples_of([90, 180], steps=4000)) is None


@pytest.mark.parametrize(
    "samples",
    [
        Rows(np.zeros(0, np.int64)),
        Rows(np.array([1, 2]), {}, np.array([0, 1])),
        samples_of([90, 180, 270, 360], steps=60),
    ],
)
def test_without_samples_of_that_time_nothing_is_known(samples: Rows) -> None:
    assert found(teeth(90), samples) is None


def test_the_last_collection_is_told_by_its_step() -> None:
    assert last_collection_step(samples_of([90, 180])) == 180
    assert last_collection_step(samples_of([])) is None

"""Growth is found soon after it began, and never where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.step_floors import (
    BASE,
    BLOCKS,
    CLEAN,
    KIB,
    MIB,
    at,
    clean,
    leaking,
    prefixes,
    rank_of,
    steps_of,
)
from vramscope_analysis.diagnosis.floors import floors_of
from vramscope_analysis.diagnosis.trend import Growth, growth_of, kept_level
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence


def growth(rank: RankEvidence) -> Growth | None:
    return growth_of(floors_of(rank.steps))


def first_found(rank: RankEvidence) -> int | None:
    """Rows after which growth is seen first."""
    return next((len(known.steps) for known in prefixes(rank) if growth(known)), None)


def test_the_kept_level_is_the_lowest_from_there_on() -> None:
    values = np.array([5.0, 1.0, 4.0, 3.0, 9.0])
    assert kept_level(values).tolist() == [1.0, 1.0, 3.0, 3.0, 9.0]


@pytest.mark.parametrize(("slope", "within"), [(MIB, 50), (256 * KIB, 60), (64 * KIB, 200)])
def test_a_leak_is_found_soon_after_it_began(slope: int, within: int) -> None:
    rows = first_found(leaking(slope, onset=50))
    assert rows is not None
    assert rows <= 50 + within


@pytest.mark.parametrize("every", [2, 7, 20])
def test_so_is_one_that_leaks_in_some_steps_only(every: int) -> None:
    rows = first_found(leaking(MIB, onset=50, every=every, steps=600))
    assert rows is not None
    assert rows <= 50 + max(100, 12 * every)


def test_it_says_since_when_how_fast_and_how_much() -> None:
    found = growth(at(leaking(MIB, onset=120), 300))
    assert found is not None
    assert found.slope_bytes == MIB
    assert abs(found.since_step - 121) <= 2
    assert found.until_step == 300
    assert found.base_bytes == pytest.approx(BASE, abs=2 * MIB)
    assert found.grown_bytes == pytest.approx(179 * MIB, abs=3 * MIB)
    assert (found.adds_blocks, round(found.blocks_per_step)) == (True, 1)


def test_noise_of_batches_does_not_hide_a_leak() -> None:
    rng = np.random.default_rng(3)
    kept = np.maximum(steps_of(600) - 50, 0)
    floor = BASE + kept * MIB + rng.integers(0, 40 * MIB, 600)
    found = growth(rank_of(floor, BLOCKS + kept))
    assert found is not None
    assert found.slope_bytes == pytest.approx(MIB, rel=0.1)


@pytest.mark.parametrize("name", [name for name in CLEAN if name != "metric of an epoch"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_job_that_is_well_never_seems_to_add_tensors_for_long(name: str, seed: int) -> None:
    """Of a cache that fills up it may seem so for a while; that is why it is only suspected."""
    found = [growth(known) for known in prefixes(clean(name, seed=seed), every=3)]
    adding = [each for each in found if each is not None and each.adds_blocks]
    assert len(adding) <= (len(found) // 3 if name == "shapes are cached" else 0)


def test_a_metric_that_is_reset_is_growth_in_its_first_epoch_at_most() -> None:
    found = [len(known.steps) for known in prefixes(clean("metric of an epoch")) if growth(known)]
    assert not found or max(found) <= 101


def test_a_buffer_that_is_full_has_stopped_growing_soon() -> None:
    filled = np.minimum(steps_of(400), 200)
    rank = rank_of(BASE + filled * MIB, BLOCKS + filled)
    assert growth(at(rank, 200)) is not None
    assert growth(at(rank, 215)) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_full_buffer_is_none_for_long_whatever_streams_and_evaluations_come(seed: int) -> None:
    """The course that a job of a GPU has shown: cuBLAS takes 32 MiB for each new stream there."""
    number = steps_of(400) + 1
    filled, streams = np.minimum(number, 120), (number >= 100) * 1 + (number >= 170)
    batches = np.random.default_rng(seed).integers(16, 256, 400) * KIB
    evaluations = (number % 50 == 0) * 64 * MIB
    floor = BASE + filled * 256 * KIB + streams * 32 * MIB + batches + evaluations
    rank = rank_of(floor, BLOCKS + filled + streams)
    assert growth(at(rank, 100)) is not None
    assert not any(growth(at(rank, rows)) for rows in range(140, 401))


@pytest.mark.parametrize("at_steps", [(100, 170), (300, 330, 380)])
def test_what_comes_at_once_neither_hides_a_leak_nor_is_taken_for_its_pace(
    at_steps: tuple[int, ...],
) -> None:
    kept = np.maximum(steps_of(600) - 50, 0)
    jumps = sum((steps_of(600) >= step) * 1 for step in at_steps)
    rank = rank_of(BASE + kept * 64 * KIB + jumps * 32 * MIB, BLOCKS + kept + jumps)
    found = [growth(at(rank, rows)) for rows in range(250, 601, 5)]
    assert [each and each.slope_bytes for each in found] == pytest.approx(
        [64 * KIB] * len(found), rel=0.02
    )


def test_a_cache_that_fills_up_more_and_more_slowly_is_growth_no_longer() -> None:
    seen = (300 * (1 - np.exp(-steps_of(500) / 150))).astype(np.int64)
    rank = rank_of(BASE + seen * MIB, BLOCKS + seen)
    assert growth(at(rank, 60)) is not None
    assert all(growth(at(rank, rows)) is None for rows in range(200, 500, 5))


def test_thinned_rows_are_as_good_as_all() -> None:
    rank = leaking(64 * KIB, onset=50, steps=6000)
    keep = np.concatenate([np.arange(64), np.arange(64, 4000, 7), np.arange(4000, 6000)])
    columns = {name: column[keep] for name, column in rank.steps.columns.items()}
    assert rank.steps.number is not None
    rows = Rows(rank.steps.time_ns[keep], columns, rank.steps.number[keep])
    found = growth_of(floors_of(rows))
    assert found is not None
    assert found.slope_bytes == pytest.approx(64 * KIB, rel=0.01)
    assert abs(found.since_step - 51) <= 30


def test_attached_in_the_middle_of_a_leak_it_is_found_from_what_is_seen() -> None:
    number = steps_of(120)
    found = growth(rank_of(BASE + number * MIB, BLOCKS + number, first_step=70_000))
    assert found is not None
    assert 70_000 <= found.since_step <= 70_001


def test_half_a_kib_a_step_is_not_worth_a_word() -> None:
    number = steps_of(20_000)
    assert growth(rank_of(BASE + number * 512, BLOCKS + number)) is None

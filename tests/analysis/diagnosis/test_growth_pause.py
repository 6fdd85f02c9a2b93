"""What is full has stopped growing soon, however noisy it is; what only pauses has not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.step_floors import MIB
from vramscope_analysis.diagnosis.growth_pause import has_stopped
from vramscope_analysis.diagnosis.trend import kept_level
from vramscope_analysis.evidence.columns import Numbers

FULL_AT = 120


def stopped(values: Numbers, slope: float = MIB) -> bool:
    return has_stopped(kept_level(values), slope, least_rises=6, least_rows=8, parts=6)


def filling(rows: int, noise_bytes: float, seed: int = 0) -> Numbers:
    """A buffer of 1 MiB a step that is full after so many, and batches of any length."""
    noise = np.random.default_rng(seed).random(400)[:rows] * noise_bytes
    return np.minimum(np.arange(rows), FULL_AT) * float(MIB) + noise


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise_bytes", [0, MIB // 4, MIB])
def test_what_is_full_is_seen_to_be_within_some_steps(noise_bytes: int, seed: int) -> None:
    assert all(stopped(filling(rows, noise_bytes, seed)) for rows in range(FULL_AT + 16, 400))


@pytest.mark.parametrize("noise_bytes", [0, MIB // 4, 4 * MIB])
def test_while_it_fills_it_has_not_stopped(noise_bytes: int) -> None:
    assert not any(stopped(filling(rows, noise_bytes)) for rows in range(24, FULL_AT))


def in_every_tenth(row: Numbers) -> Numbers:
    return np.floor(row / 10) * 10


def by_chance(row: Numbers) -> Numbers:
    return np.cumsum(np.random.default_rng(5).random(len(row)) < 0.3) / 0.3


@pytest.mark.parametrize("course", [in_every_tenth, by_chance])
def test_a_leak_that_pauses_between_its_rises_has_not(
    course: Callable[[Numbers], Numbers],
) -> None:
    values = course(np.arange(600.0)) * MIB
    assert not any(stopped(values[:rows]) for rows in range(100, 600))


def test_with_few_rises_nobody_knows_how_they_come() -> None:
    assert not stopped(np.repeat([0.0, 1.0, 2.0], [3, 3, 60]) * MIB)


def test_numbers_too_large_for_a_step_come_to_an_end() -> None:
    assert not stopped(np.array([0.0, 2.0**62, 2.0**62, 2.0**62]), 1.0)

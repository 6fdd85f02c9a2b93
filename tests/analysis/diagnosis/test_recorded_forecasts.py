"""Forecasts of recorded jobs, whose memory then really ran out, or did not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from tests.cases.workloads.growing import GROWING
from tests.support.job_process import REPOSITORY
from tests.support.recorded_forecasts import (
    WAYS,
    Told,
    at_ways,
    end_of,
    recorded,
    row_at,
    table,
    told_all_along,
    told_at,
)

STEADY: Final = ("even_leak", "graph_leak", "evaluation_leak", "seldom_leak", "noisy_leak")
STOPS: Final = {"stopped_leak": 300, "filling_cache": 500}
"""The step from which nothing grows any more, or hardly anything."""
_WITHDRAWN_WITHIN_STEPS: Final = 24


def right_share(told: Sequence[Told]) -> float:
    return sum(each.is_right for each in told) / len(told)


def stated(told: Sequence[Told]) -> float:
    return sum(each.confidence for each in told) / len(told)


def test_each_job_is_recorded_with_its_end() -> None:
    for name, growing in GROWING.items():
        last = recorded(name).steps.number
        assert last is not None
        assert end_of(name) == (int(last[-1]) + 1 if growing.ends else None)


@pytest.mark.parametrize("name", STEADY)
def test_a_leak_that_goes_on_is_forecast_rightly_at_each_quarter_of_the_way(name: str) -> None:
    told = [told_at(name, row_at(name, way)) for way in WAYS]
    assert [each is not None and each.is_right for each in told] == [True] * len(WAYS), told


@pytest.mark.parametrize("name", STEADY)
def test_all_along_a_leak_it_is_right_as_often_as_it_says(name: str) -> None:
    told = told_all_along(name, every=23)
    assert right_share(told) >= stated(told), told


def test_with_all_that_stops_or_quickens_it_is_right_as_often_as_it_says() -> None:
    told = at_ways()
    assert len(told) >= 15
    assert right_share(told) >= stated(told)


def test_a_leak_that_becomes_faster_is_told_anew() -> None:
    end = end_of("quickening_leak")
    assert end is not None
    before, after = told_at("quickening_leak", 180), told_at("quickening_leak", end * 3 // 4)
    assert before is not None
    assert not before.is_right  # nobody can know
    assert after is not None
    assert after.is_right


@pytest.mark.parametrize(("name", "last"), STOPS.items())
def test_where_growth_stops_the_forecast_is_withdrawn(name: str, last: int) -> None:
    steps = len(recorded(name).steps)
    told = [told_at(name, row) for row in range(last + _WITHDRAWN_WITHIN_STEPS, steps, 19)]
    assert told
    assert set(told) == {None}


def test_reference_cycles_have_no_forecast_at_any_time() -> None:
    assert told_all_along("cycles") == []


def test_longer_batches_are_told_of_only_near_the_end_and_rightly() -> None:
    told = told_all_along("longer_batches", every=5)
    end = end_of("longer_batches")
    assert end is not None
    assert told
    assert all(each.is_right and each.row > 0.8 * end for each in told)


def test_the_range_becomes_narrower_on_the_way() -> None:
    for name in STEADY:
        early, late = (told_at(name, row_at(name, way)) for way in (25, 90))
        assert early is not None
        assert late is not None
        assert late.late_step - late.early_step <= early.late_step - early.early_step


def test_the_page_has_the_table_as_it_is() -> None:
    page = (REPOSITORY / "docs/verdicts.md").read_text()
    assert "\n".join(table()) in page

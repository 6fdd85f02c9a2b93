"""Which size is worth a few steps, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.made_batches import LIMIT, batch_rank, line, planned
from tests.support.made_ranks import GIB
from vramscope_analysis.batch.batch_advice import BatchAdvice, batch_advice
from vramscope_analysis.batch.probe_plan import ProbePlan, probe_plan
from vramscope_analysis.batch.run_advice import RunAdvice


def advice(sizes: list[int], **columns: Any) -> RunAdvice:
    found = batch_advice(batch_rank(sizes, columns=columns))
    assert isinstance(found, BatchAdvice)
    return RunAdvice((found,))


def plan(sizes: list[int], **columns: Any) -> ProbePlan:
    found = probe_plan(advice(sizes, **columns))
    assert found is not None
    return found


def test_it_goes_up_but_surely_fits() -> None:
    found = plan([4] * 20)
    assert found.batch == 8
    assert line(found.batch) < 0.95 * LIMIT
    assert found.params == {"batch_size": 8, "accumulation": 1, "change_global_batch": True}
    assert found.back_params == {"batch_size": 4, "accumulation": 1, "change_global_batch": True}


def test_where_passes_can_make_up_for_it_the_global_batch_is_kept() -> None:
    found = plan([4] * 20, **{"step.batch_count": 6})
    assert (found.batch, found.passes, found.back_passes) == (6, 4, 6)
    assert not found.changes_global_batch
    assert found.params == {"batch_size": 6, "accumulation": 4}
    assert "as many samples" in dict(found.costs)["Each learns from"]


def test_what_it_costs_is_said() -> None:
    costs = dict(plan([4] * 20).costs)
    assert costs["Steps"] == "4 with 8 samples in place of 4"
    assert "learning rates" in costs["Each learns from"]


def test_there_is_none_where_nothing_is_open_or_nothing_larger_fits() -> None:
    sure = advice(planned((8, 9), (48, 9)))
    replayed = RunAdvice((replace(sure.deciding, is_replayed=True),))
    assert probe_plan(replayed) is None
    assert probe_plan(advice([60] * 20)) is None
    growing = [GIB * (8 + step // 10) for step in range(60)]
    assert probe_plan(advice([4] * 60, **{"allocated_bytes.all.current": growing})) is None

"""One size for all ranks: the fullest decides, and the global batch may be kept."""

from __future__ import annotations

from typing import Any

from tests.support.made_batches import LIMIT, batch_rank
from tests.support.made_ranks import GIB
from vramscope_analysis.batch.batch_advice import batch_advice
from vramscope_analysis.batch.run_advice import KeptBatch, RunAdvice, run_advice


def advised(*limits: int, world_size: int | None = None, **columns: Any) -> RunAdvice:
    ranks = {
        rank: batch_advice(batch_rank([8] * 12, total_bytes=limit, columns=columns, rank=rank))
        for rank, limit in enumerate(limits)
    }
    found = run_advice(ranks, world_size or len(limits))
    assert isinstance(found, RunAdvice), found
    return found


def test_the_rank_with_the_least_room_decides() -> None:
    found = advised(LIMIT, LIMIT - 20 * GIB, LIMIT)
    assert found.deciding.rank == 1
    assert found.batch == advised(LIMIT - 20 * GIB).batch < advised(LIMIT).batch
    assert found.gain == 3 * (found.batch - 8)


def test_a_rank_that_tells_nothing_makes_it_unsure() -> None:
    ranks = {0: batch_advice(batch_rank([8] * 12)), 1: batch_advice(batch_rank([]))}
    found = run_advice(ranks, 2)
    assert isinstance(found, RunAdvice)
    assert dict(found.silent) == {1: "no_steps"}
    assert found.confidence == "low"
    assert advised(LIMIT, world_size=2).confidence == "low"


def test_nobody_tells_anything() -> None:
    assert run_advice({}, 1) == "no_steps"
    assert run_advice({0: "no_batch"}, 1) == "no_batch"


def test_the_global_batch_is_kept_by_fewer_passes() -> None:
    found = advised(30 * GIB, **{"step.batch_count": 6})
    assert 48 > found.batch >= 24
    assert found.keeping == KeptBatch(24, 2)


def test_it_is_kept_by_more_passes_where_less_fits() -> None:
    found = advised(12 * GIB, **{"step.batch_count": 1})
    assert found.batch < 8
    assert found.keeping is not None
    assert found.keeping.batch * found.keeping.passes == 8


def test_without_passes_there_is_no_size_that_keeps_it() -> None:
    assert advised(LIMIT, **{"step.batch_count": 1}).keeping is None
    assert advised(LIMIT, **{"step.batch_count": 0}).keeping is None

"""The largest batch of one rank, how sure it is, and when there is nothing to say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.made_batches import FIXED, GRADIENTS, LIMIT, batch_rank, line, planned
from tests.support.made_ranks import GIB
from vramscope_analysis.batch.batch_advice import BatchAdvice, batch_advice, below_failed
from vramscope_analysis.evidence.run_evidence import RankEvidence

ALLOWED = 0.95 * LIMIT


def advised(rank: RankEvidence) -> BatchAdvice:
    found = batch_advice(rank)
    assert isinstance(found, BatchAdvice), found
    return found


def test_it_fits_with_head_room_and_is_near_the_largest_that_does() -> None:
    found = advised(batch_rank(planned((8, 9), (48, 9))))
    truth = int((ALLOWED - FIXED - GIB) // (GIB // 2))
    assert line(found.batch) <= found.peak_bytes <= ALLOWED
    assert 0.88 * truth <= found.batch <= truth
    assert found.low <= found.batch
    assert found.high == truth
    assert found.confidence == "medium"  # what lies between blocks is a guess
    assert replace(found, is_replayed=True).confidence == "high"


def test_of_one_size_it_is_a_lower_bound() -> None:
    found = advised(batch_rank([4] * 20))
    assert line(found.batch) <= ALLOWED
    assert found.high is not None
    assert found.high > 1.5 * found.batch
    assert found.confidence == "low"


def test_a_smaller_batch_is_advised_where_the_present_one_leaves_too_little() -> None:
    found = advised(batch_rank([64] * 20))
    assert found.current == 64
    assert found.batch < 64
    assert line(found.batch) <= ALLOWED


def test_memory_that_grows_makes_it_unsure() -> None:
    floors = np.linspace(FIXED, FIXED + 2 * GIB, 60).astype(np.int64)
    columns = {"allocated_bytes.all.current": floors}
    found = advised(batch_rank([8] * 60, columns=columns))
    assert found.grows_bytes > GIB
    assert found.confidence == "low"


def flat(_size: int) -> int:
    return FIXED


def far_too_large(size: int) -> int:
    return FIXED + GRADIENTS + 100 * GIB * size


@pytest.mark.parametrize(
    ("rank", "why"),
    [
        (batch_rank([]), "no_steps"),
        (batch_rank([8] * 9, total_bytes=None), "no_limit"),
        (batch_rank([8] * 9, flat), "flat"),
        (batch_rank([1] * 9, far_too_large), "too_small"),
    ],
)
def test_why_nothing_is_said(rank: Any, why: str) -> None:
    assert batch_advice(rank) == why


def test_a_size_that_memory_ran_out_with_is_not_advised_again() -> None:
    found = advised(batch_rank(planned((8, 9), (48, 9))))
    lower = below_failed(found, 40)
    assert (lower.batch, lower.high, lower.ran_out_at) == (39, 39, 40)
    assert lower.low <= 39
    assert below_failed(found, 1000).batch == found.batch

"""Pieces are made whole by what the report shows to be in the way, and no setting is guessed."""

from __future__ import annotations

from typing import Any

from tests.analysis.diagnosis.test_oom_remedies import actions
from tests.support.made_ooms import MIB, STEP_NS, made_oom, step_rows
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch

PIECES = made_oom(step_rows([800] * 30), allocated_mib=600, pieces_mib=300)


def test_pieces_are_made_whole_where_the_request_is_most_of_a_step() -> None:
    steps = step_rows([600] * 30, 200)
    large = made_oom(steps, allocated_mib=200, request_mib=400, pieces_mib=500)
    assert "allocate what lasts before the large block" in actions(large)
    assert "allocate what lasts" not in actions(PIECES)
    assert "record the next run" in actions(PIECES)
    assert "lower the batch" not in actions(PIECES)


def test_the_cache_is_emptied_after_an_evaluation_that_came_just_before() -> None:
    since = Stretch("eval", 29 * STEP_NS + 5, 30 * STEP_NS - 5, 29)
    long_ago = Stretch("eval", 2 * STEP_NS, 3 * STEP_NS, 2)
    assert "empty the cache after the evaluation" in actions(
        PIECES, RankEvidence(0, stretches=(since,))
    )
    assert "empty the cache" not in actions(PIECES, RankEvidence(0, stretches=(long_ago,)))


def test_blocks_that_are_larger_than_the_request_are_those_to_empty_the_cache_after() -> None:
    """Blocks of the request's own size lie in segments of 300 MiB."""
    block: dict[str, Any] = {"requested_bytes": 200 * MIB, "count": 1, "bytes": 200 * MIB}
    large = {"pool": "large", "bytes": 300 * MIB, "largest_bytes": 100 * MIB}
    large |= {"largest_segment_bytes": 300 * MIB, "pinned_by": [block]}
    steps = step_rows([800] * 30)
    text = actions(made_oom(steps, allocated_mib=600, pieces_mib=300, free_blocks=(large,)))
    assert "empty the cache after what takes blocks of 300 MiB, such as an evaluation" in text
    other = {**large, "pinned_by": [{**block, "requested_bytes": 17 * MIB}]}
    text = actions(made_oom(steps, allocated_mib=600, pieces_mib=300, free_blocks=(other,)))
    assert "empty the cache" not in text

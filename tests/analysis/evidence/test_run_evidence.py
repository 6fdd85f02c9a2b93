"""What judges may read of a run."""

from __future__ import annotations

import dataclasses

import pytest

from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence


def test_of_what_was_not_told_nothing_is_known() -> None:
    rank = RankEvidence(0)
    assert (len(rank.steps), len(rank.samples), rank.growth, rank.settings) == (0, 0, None, None)
    assert RunEvidence("run-a", 5).state == "live"


def test_judges_cannot_change_it() -> None:
    rank, run = RankEvidence(0), RunEvidence("run-a", 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        rank.total_bytes = 1  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.emulated = True  # type: ignore[misc]

"""A job that barely fits is told so, with what would help it; one that grows is another matter."""

from __future__ import annotations

from typing import Any

from tests.support.made_ranks import GIB, made_rank, prefixes
from vramscope_analysis.diagnosis.tight import tight

CATEGORIES = {
    "category.parameters_bytes": 10 * GIB,
    "category.optimizer_state_bytes": 20 * GIB,
    "category.buffers_bytes": 0,
    "category.gradients_bytes": 10 * GIB,
    "category.gradients_kept_bytes": 0,
    "reserved_bytes.all.current": 79 * GIB,
    "step.peak_reserved_bytes": 79 * GIB,
    "step.peak_part": 1,
    "user.batch_size": 8,
}


def columns(peaks: list[int]) -> dict[str, Any]:
    return {
        **CATEGORIES,
        "step.peak_allocated_bytes": peaks,
        "step.peak_active_bytes": peaks,
    }


def test_barely_fitting_is_info_with_the_remedies_of_this_job() -> None:
    (finding,) = tight(made_rank(120, columns=columns([78 * GIB] * 120)))
    assert (
        finding.summary
        == "Tight. 2.0 GiB (2.5\u2009%) of head-room at the peak; flat for 120 steps."
    )
    assert (finding.kind, finding.severity, finding.subject) == ("near_oom", "info", "head-room")
    actions = [remedy.action for remedy in finding.remedies]
    assert actions[0] == "halve the batch (8 to 4) and accumulate the gradients of 2"
    assert finding.remedies[0].predicted_bytes == 24 * GIB
    assert "use an 8-bit optimizer" in actions


def test_room_enough_too_few_steps_or_an_unknown_limit_are_no_finding() -> None:
    peaks: list[int] = [70 * GIB] * 120
    assert tight(made_rank(120, columns=columns(peaks))) == []
    full = columns([79 * GIB] * 120)
    assert tight(made_rank(120, columns=full, total_bytes=None)) == []
    early = [tight(rank) for rank in prefixes(made_rank(120, columns=full))[:39]]
    assert early == [[]] * 39


def test_a_peak_that_has_just_risen_is_not_called_flat() -> None:
    rising = [60 * GIB + step * GIB // 6 for step in range(114)]
    rank = made_rank(114, columns=columns(rising))
    assert [tight(each) for each in prefixes(rank)] == [[]] * 114


def test_a_single_high_moment_that_is_long_over_is_not_what_the_job_needs() -> None:
    peaks = [70 * GIB] * 160
    peaks[50] = 79 * GIB
    rank = made_rank(160, columns=columns(peaks))
    assert [tight(each) for each in prefixes(rank)][99:] == [[]] * 61
    peaks[120] = 79 * GIB
    (finding,) = tight(made_rank(160, columns=columns(peaks)))
    assert finding.evidence["needed_bytes"] == 79 * GIB

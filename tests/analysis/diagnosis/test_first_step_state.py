"""The state that an optimizer makes in its first step: told while it is news."""

from __future__ import annotations

from typing import Any

from tests.support.made_ranks import GIB, MIB, made_rank, prefixes
from vramscope_analysis.diagnosis.first_step_state import first_step_state
from vramscope_analysis.evidence.columns import UNKNOWN, Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

COUNT = 100


def job(
    state: int = 16 * GIB, peak: int = 30 * GIB, count: int = COUNT, **more: Any
) -> RankEvidence:
    columns: dict[str, Any] = {
        "category.optimizer_state_bytes": state,
        "allocated_bytes.all.peak": peak,
        "step.peak_allocated_bytes": [UNKNOWN, *[peak + state] * (count - 1)],
        "step.peak_part": 2,
    }
    return made_rank(count, columns=columns | more.pop("changes", {}), **more)


def test_it_is_told_from_the_first_step_on_and_no_longer_than_it_is_news() -> None:
    found = [first_step_state(each) for each in prefixes(job())]
    assert [bool(each) for each in found] == [True] * 60 + [False] * 40
    (finding,) = found[0]
    assert finding.summary == (
        "The optimizer's state came with step 1: 16.0 GiB that stay from now on."
    )
    assert (finding.kind, finding.severity, finding.since_step) == ("first_step_state", "info", 1)
    assert finding.evidence["next_peak_bytes"] == 46 * GIB
    assert "leak" not in str(found)


def test_a_next_step_that_will_not_fit_is_said_before_it_begins() -> None:
    (finding,) = first_step_state(job(peak=70 * GIB, count=1))
    assert finding.severity == "critical"
    assert finding.summary.endswith("the next step needs 86.0 GiB of 80.0 GiB.")
    # When it has come through, it has come through.
    (later,) = first_step_state(job(peak=70 * GIB, count=2))
    assert later.severity == "info"


def test_where_the_peak_was_is_not_known_nothing_is_foretold() -> None:
    for part in (0, 3, UNKNOWN):
        job_of_part = job(peak=70 * GIB, count=1, changes={"step.peak_part": part})
        assert [finding.severity for finding in first_step_state(job_of_part)] == ["info"]


def test_a_state_that_comes_later_is_seen_to_come() -> None:
    late = [0] * 10 + [16 * GIB] * 90
    rank = job(changes={"category.optimizer_state_bytes": late})
    found = [bool(first_step_state(each)) for each in prefixes(rank)]
    assert found == [False] * 10 + [True] * 60 + [False] * 30


def test_whoever_was_attached_to_late_has_seen_nothing_come() -> None:
    rows = job(count=5).steps
    assert rows.number is not None
    late = Rows(rows.time_ns, rows.columns, rows.number + 500)
    assert first_step_state(RankEvidence(0, steps=late, total_bytes=80 * GIB)) == []


def test_little_none_or_unknown_is_no_finding() -> None:
    assert first_step_state(job(state=GIB, count=5)) == []
    assert first_step_state(job(state=32 * MIB, count=5, total_bytes=100 * MIB)) == []
    assert first_step_state(job(state=0, count=5)) == []
    assert first_step_state(job(state=UNKNOWN, count=5)) == []
    assert first_step_state(job(count=5, total_bytes=None)) == []


def test_a_large_state_comes_with_what_would_make_it_smaller() -> None:
    changes = {
        "category.parameters_bytes": 8 * GIB,
        "category.gradients_bytes": 8 * GIB,
        "category.buffers_bytes": 0,
        "category.gradients_kept_bytes": 0,
        "step.peak_reserved_bytes": 60 * GIB,
        "step.duration_us": 20_000_000,
    }
    (finding,) = first_step_state(job(count=30, changes=changes))
    assert [remedy.action for remedy in finding.remedies] == [
        "probe batch sizes with a whole step, the optimizer's included",
        "use an 8-bit optimizer",
        "keep the optimizer's state in host memory",
    ]

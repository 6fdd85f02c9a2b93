"""A container that fills up is told as one, and alarms only where it will not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.step_floors import GIB, MIB, group_of, held_by, leaking, report_of
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.words import MAX_SENTENCE
from vramscope_analysis.evidence.growth_report import Frame, Holder
from vramscope_analysis.evidence.run_evidence import RankEvidence

LIMIT = Frame("/job/train.py", 60, "push")


def rank(holder: Holder, total_bytes: int = 80 * GIB) -> RankEvidence:
    """A job that keeps 1 MiB more in each of 348 steps; an agent has looked at step 400."""
    report = report_of(group_of(holder), steps=(388, 392, 396, 400))
    return replace(leaking(MIB), growth=report, total_bytes=total_bytes)


def one(known: RankEvidence) -> Finding:
    (finding,) = leak(known)
    assert len(finding.summary) <= MAX_SENTENCE
    return finding


def held(words: str) -> Holder:
    return held_by("attribute", "Ring.rows", words)


@pytest.mark.parametrize("words", ["deque(maxlen=64) of 16", "list(empty=48) of 64"])
def test_of_a_container_with_room_for_all_nothing_is_said(words: str) -> None:
    assert leak(rank(held(words))) == []


def test_a_model_that_is_pruned_part_by_part_gets_masks_and_is_no_leak() -> None:
    chain = ("model", "Sequential._modules", "dict of 8", "Linear._buffers", "['weight_mask']")
    assert leak(rank(held_by("local", *chain), GIB + 200 * MIB)) == []


def test_a_bound_that_does_not_fit_is_a_coming_out_of_memory_and_no_leak() -> None:
    # 16 entries hold 16 MiB; the process has 1.2 GiB, of which some 350 MiB are left.
    finding = one(rank(held("deque(maxlen=4096) of 16"), GIB + 200 * MIB))
    assert (finding.kind, finding.stage) == ("near_oom", "confirmed")
    assert finding.severity in ("warning", "critical")
    assert finding.summary.startswith(
        "Ring.rows fills up by 1.0 MiB per step: 16 of 4,096. Out of memory in "
    )
    assert finding.culprits[0].line == 56
    assert finding.summary.endswith("before it is full.")
    assert finding.remedies[0].action == "Lower its maxlen, or keep it on the CPU"
    assert finding.remedies[0].fix == "maxlen=2_048"
    # A smaller one is full before.
    assert leak(rank(held("deque(maxlen=64) of 16"), GIB + 200 * MIB)) == []


def test_a_bound_of_its_owner_is_told_and_stays_suspected() -> None:
    finding = one(rank(held("list(capacity=64) of 16")))
    assert (finding.kind, finding.severity, finding.stage) == ("leak", "info", "suspected")
    assert finding.summary == "Ring.rows fills up by 1.0 MiB per step at train.py:56: 16 of 64."
    assert "Full it holds about 64.0 MiB, if it keeps to its capacity." in finding.detail
    assert (finding.culprits[0].line, finding.evidence["most"]) == (56, 64)


def test_what_has_come_since_is_counted_in() -> None:
    report = report_of(group_of(held("list(capacity=400) of 16")), steps=(100, 104, 108, 112))
    finding = one(replace(rank(held("")), growth=report))
    assert finding.summary.endswith(f": {16 + 400 - 112} of 400.")


def test_one_that_went_beyond_its_bound_does_not_keep_to_it() -> None:
    known = replace(
        rank(held("list(capacity=20) of 16")),
        growth=report_of(group_of(held("list(capacity=20) of 16")), steps=(100, 104, 108, 112)),
    )
    assert one(known).summary.startswith("Leaking 1.0 MiB per step at train.py:56")


def test_a_line_that_takes_out_again_is_named() -> None:
    finding = one(rank(replace(held("list of 16"), limited_at=LIMIT)))
    assert (finding.severity, finding.stage) == ("info", "suspected")
    assert finding.summary.startswith("Ring.rows fills up by 1.0 MiB per step")
    assert "train.py:60 takes out of it again" in finding.detail


def test_what_may_be_full_before_is_urgent_all_the_same_and_says_so() -> None:
    finding = one(rank(replace(held("list of 16"), limited_at=LIMIT), GIB + 200 * MIB))
    assert (finding.severity, finding.stage) == ("critical", "suspected")
    assert finding.summary.endswith("unless it is full before.")
    assert "Leaking" not in finding.summary


def test_a_graph_is_kept_whatever_limits_the_container() -> None:
    holder = replace(
        held_by("autograd_graph", "losses", "list(capacity=64) of 16"), limited_at=LIMIT
    )
    assert one(rank(holder)).summary.startswith("Leaking")


def test_an_lru_cache_counts_calls_and_is_no_buffer() -> None:
    finding = one(rank(held_by("lru_cache", "Net.grid", "lru_cache(maxsize=128) of 6")))
    assert finding.stage == "confirmed"
    assert "It keeps 6 calls, of 128 at most." in finding.detail

"""Reports of real jobs are judged by their mechanism, and nothing is said that must not be."""

from __future__ import annotations

import pytest

from tests.support.recorded_ooms import recorded_oom, recorded_reports
from vramscope_analysis.diagnosis.oom import diagnose_oom

MIB = 1 << 20

CAUSES = {
    "too_big": "too_big",
    "long_sample": "spike",
    "carved_workspace": "fragmentation",
    "after_evaluation": "fragmentation",
    "cycles": "garbage",
    "probe_with_few_boxes": "spike",
    "probe_without_state": "first_step_state",
    "evaluation": "evaluation",
    "one_request": "large_request",
    "kept_list": "growth",
}
FIRST_REMEDY = {
    "too_big": "lower the batch to half",
    "long_sample": "bound the size of a batch",
    "carved_workspace": "allocate what lasts before the large block",
    "after_evaluation": "empty the cache after",
    "cycles": "break the reference cycle, or collect garbage",
    "probe_with_few_boxes": "bound the size of a batch",
    "probe_without_state": "try a batch with a whole step, the optimizer's included",
    "evaluation": "evaluate in smaller batches",
    "one_request": "look at the shapes",
    "kept_list": "let go of what kept holds",
}
NEVER = {
    "long_sample": "leak piled fragment",
    "carved_workspace": "batch leak too big",
    "after_evaluation": "batch leak",
    "cycles": "batch",
    "probe_with_few_boxes": "leak epoch",
    "evaluation": "lower leak",
    "one_request": "expandable_segments fragment",
    "kept_list": "batch empty fragment",
}


@pytest.mark.parametrize("name", sorted(recorded_reports()))
def test_the_cause_is_what_the_job_did(name: str) -> None:
    finding = diagnose_oom(recorded_oom(name))
    assert finding.evidence["cause"] == CAUSES[name]
    assert len(finding.summary) <= 110
    assert finding.remedies[0].action.startswith(FIRST_REMEDY[name])


@pytest.mark.parametrize("name", sorted(NEVER))
def test_what_must_not_be_advised_is_not(name: str) -> None:
    remedies = diagnose_oom(recorded_oom(name)).remedies
    text = "\n".join(f"{remedy.action} {remedy.fix}" for remedy in remedies[1:])
    assert [word for word in NEVER[name].split() if word in text] == []


@pytest.mark.parametrize("name", sorted(recorded_reports()))
def test_no_setting_is_named_that_nobody_tried(name: str) -> None:
    finding = diagnose_oom(recorded_oom(name))
    text = finding.summary + finding.detail + str(finding.remedies)
    assert "expandable_segments" not in text
    assert "max_split_size" not in text


def test_who_stays_in_the_way_and_who_collects_are_named() -> None:
    carved = diagnose_oom(recorded_oom("carved_workspace")).culprits[0]
    assert (carved.held_by[-1], carved.bytes) == ("kept", 102 * MIB)
    cycle = diagnose_oom(recorded_oom("cycles")).culprits[0]
    assert cycle.held_by[-1] == "Node"


def test_predictions_are_numbers_of_the_job() -> None:
    long = diagnose_oom(recorded_oom("long_sample"))
    # Back to the most that any step before had needed.
    needed, highest = long.evidence["needed_bytes"], long.evidence["highest_peak_bytes"]
    assert long.remedies[0].predicted_bytes == needed - highest
    cycles = recorded_oom("cycles")
    assert diagnose_oom(cycles).remedies[0].predicted_bytes == cycles.garbage_bytes
    state = diagnose_oom(recorded_oom("probe_without_state"))
    assert "its state (128 MiB)" in state.remedies[0].why  # two copies of 64 MiB

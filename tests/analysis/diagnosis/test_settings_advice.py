"""Settings are advised with proof only, never what is on already, and never a pair that clashes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.allocator_traces import load_trace
from vramscope_analysis.diagnosis.settings_advice import (
    conflicts_in,
    may_advise,
    read_settings,
    refuted,
    settings_conflict,
    settings_remedies,
    trials_of,
)
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_analysis.replay import advise

MIB = 1 << 20
EXPANDABLE = "expandable_segments:True"
BOTH = "expandable_segments:True,max_split_size_mb:128"

RECORDED = SettingsTrial("", True, 3212 * MIB, 2146 * MIB, 0, 0, 0, False, False)
BETTER = SettingsTrial(EXPANDABLE, False, 2298 * MIB, 2146 * MIB, 914 * MIB, 0, -9, False, True)
WORSE = SettingsTrial(
    "max_split_size_mb:128", False, 3986 * MIB, 2146 * MIB, -774 * MIB, 0, 9, False, False
)


def test_on_a_recorded_job_the_advice_is_what_really_helped_it() -> None:
    # The same job was run on a GPU under three settings: 3,212 MiB, 2,298 and 3,986.
    trials = trials_of(advise(load_trace("varlen__default").recording))
    first = settings_remedies("", trials)[0]
    assert first.fix == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    assert first.why.startswith("Replayed: 2.2 GiB reserved at the peak of the recorded steps, ")
    assert first.predicted_bytes is not None
    assert abs(first.predicted_bytes - 914 * MIB) <= 0.05 * 2298 * MIB
    assert any(text.startswith("max_split_size_mb:128") for text in refuted("", trials))


@pytest.mark.parametrize("name", ["fixed__default", "conv__default", "leak__default"])
def test_a_recorded_job_that_gains_little_is_left_alone(name: str) -> None:
    trials = trials_of(advise(load_trace(name).recording))
    gains = [remedy.predicted_bytes or 0 for remedy in settings_remedies("", trials)]
    assert all(gain >= 64 * MIB for gain in gains)
    if name != "fixed__default":
        assert gains == []


def test_what_is_on_already_is_not_advised() -> None:
    on = replace(BETTER, is_recorded=True, gain_bytes=0, is_worth_it=False)
    again = replace(BETTER, is_recorded=False)
    assert settings_remedies(EXPANDABLE, (on, again)) == ()
    assert not may_advise("expandable_segments:True ", EXPANDABLE)


def test_a_pair_that_clashes_is_not_advised_even_with_a_proof() -> None:
    proven = replace(BETTER, text=BOTH)
    assert settings_remedies("", (RECORDED, proven)) == ()
    assert not may_advise("", BOTH)


def test_nothing_is_advised_to_a_job_whose_settings_are_not_known_or_not_pytorchs() -> None:
    assert not may_advise(None, EXPANDABLE)
    assert not may_advise("no_such_option:1", EXPANDABLE)
    assert not may_advise("backend:cudaMallocAsync", EXPANDABLE)


def test_a_window_that_was_recorded_under_other_settings_proves_nothing() -> None:
    assert settings_remedies("max_split_size_mb:64", (RECORDED, BETTER)) == ()
    assert refuted("max_split_size_mb:64", (RECORDED, WORSE)) == ()
    assert settings_remedies(None, (RECORDED, BETTER))[0].predicted_bytes == 914 * MIB


def test_without_a_window_there_is_no_advice() -> None:
    assert settings_remedies("", ()) == ()
    assert settings_remedies("", (BETTER,)) == ()


def test_options_that_a_replay_knows_nothing_of_are_kept() -> None:
    now = "pinned_use_background_threads:True"
    (remedy,) = settings_remedies(now, (RECORDED, BETTER))
    assert remedy.fix == f"PYTORCH_CUDA_ALLOC_CONF={EXPANDABLE},{now}"


def test_what_was_tried_and_does_not_help_is_told() -> None:
    out = replace(WORSE, text="garbage_collection_threshold:0.6", runs_out=True)
    assert refuted("", (RECORDED, BETTER, WORSE, out)) == (
        "max_split_size_mb:128: 774 MiB more",
        "garbage_collection_threshold:0.6: runs out of memory",
    )


def test_of_a_job_that_ran_out_of_memory_the_words_say_so() -> None:
    failed = replace(RECORDED, runs_out=True)
    (remedy,) = settings_remedies("", (failed, replace(BETTER, gain_bytes=-MIB)))
    assert "do not run out of memory" in remedy.why
    assert remedy.predicted_bytes is None


def test_a_pair_in_force_is_a_finding_with_the_one_to_remove() -> None:
    (finding,) = settings_conflict(
        RankEvidence(0, settings=f"{BOTH},pinned_num_register_threads:8")
    )
    assert (finding.kind, finding.severity) == ("fragmentation", "warning")
    assert finding.remedies[0].fix == (
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,pinned_num_register_threads:8"
    )
    for text in (None, "", EXPANDABLE, "max_split_size_mb:128", "no_such_option:1"):
        assert settings_conflict(RankEvidence(0, settings=text)) == []
    assert conflicts_in("expandable_segments:False,max_split_size_mb:128") == ()


def test_commas_within_brackets_part_no_options() -> None:
    text = f"roundup_power2_divisions:[256:1,512:2,>:4],{BOTH}"
    assert conflicts_in(text)[0].fix == (
        "roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True"
    )
    assert read_settings(conflicts_in(text)[0].fix) is not None

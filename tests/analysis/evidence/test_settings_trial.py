"""A trial says what the replay under its settings gave, and no more."""

from __future__ import annotations

from tests.support.allocator_traces import load_trace
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_analysis.replay.advice import Candidate, compare
from vramscope_analysis.replay.prediction import predict


def test_a_trial_of_a_recorded_job_has_the_numbers_of_its_replay() -> None:
    recording = load_trace("varlen__default").recording
    recorded = Candidate(recording.settings, is_recorded=True)
    baseline = predict(recording, recording.settings)
    tried = Candidate(AllocatorSettings(expandable_segments=True))
    advice = compare(tried, predict(recording, tried.settings), recorded, baseline)
    trial = SettingsTrial.of(advice)
    assert trial.text == "expandable_segments:True"
    assert trial.gain_bytes == baseline.peak_reserved_bytes - trial.peak_reserved_bytes
    assert trial.gain_bytes > 800 << 20  # the same job really ran with 914 MiB less
    assert (trial.runs_out, trial.retries, trial.is_recorded) == (False, 0, False)
    assert trial.is_worth_it

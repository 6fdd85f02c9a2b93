"""The object that ``vramscope replay --json`` prints: plain values, null for what is not known."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from vramscope.cli.replay_text import cost_words

if TYPE_CHECKING:
    from vramscope_analysis.replay import Advice, Prediction, Recording, ReplayReport

Version = tuple[int, int]

_FAR_OFF_FRACTION: Final = 0.1
"""Part of the segment events from which on a replay that differs is not the recorded job."""


def replay_answer(
    recording: Recording,
    report: ReplayReport,
    prediction: Prediction,
    advice: list[Advice] | None,
    *,
    told_version: Version | None,
) -> dict[str, Any]:
    """Everything that is known about a recorded job.

    Args:
        recording: the job.
        report: how its replay compares with it.
        prediction: how it goes under the settings that are asked about.
        advice: settings that were tried, best first; None if none were.
        told_version: torch release that the caller named; None if it was guessed.
    """
    from vramscope_analysis.replay import recommended

    # What is said about another job is no advice for this one.
    advised = None if advice is None or _is_far_off(report) else recommended(advice)
    return {
        **_recording_part(recording, report, is_guessed=told_version is None),
        **_replay_part(report),
        **_prediction_part(prediction),
        "advice": None if advice is None else [_advice_part(each) for each in advice],
        "advised": None if advised is None else advised.text,
    }


def _recording_part(
    recording: Recording, report: ReplayReport, *, is_guessed: bool
) -> dict[str, Any]:
    """What was recorded."""
    from vramscope_analysis.allocator import settings_dict, settings_text
    from vramscope_analysis.replay import Steps

    initial = report.initial
    return {
        "device": recording.device,
        "events": report.events,
        "steps": len(Steps.from_annotations(recording.annotations)) or None,
        "torch_version": _version_text(report.version),
        "torch_version_is_guessed": is_guessed,
        "torch_versions_that_fit": [_version_text(each) for each in recording.versions],
        "recorded_settings": settings_dict(recording.settings),
        "recorded_settings_text": settings_text(recording.settings),
        "recorded_peak_reserved_bytes": report.recorded_peak_reserved_bytes,
        "recorded_ooms": report.ooms,
        "is_complete": initial is None,
        "inferred": None if initial is None else asdict(initial.inferred),
    }


def _is_far_off(report: ReplayReport) -> bool:
    return report.segment_mismatches > _FAR_OFF_FRACTION * report.segment_events


def _replay_part(report: ReplayReport) -> dict[str, Any]:
    """How far the replay is what was recorded."""
    return {
        "is_exact": report.is_exact,
        "is_far_off": _is_far_off(report),
        "segment_events": report.segment_events,
        "segment_mismatches": report.segment_mismatches,
        "blocks": report.blocks,
        "block_mismatches": report.block_mismatches,
        "unknown_frees": report.unknown_frees,
        "final_mismatches": report.final_mismatches,
        "first_mismatches": [asdict(each) for each in report.first_mismatches],
        "better_torch_versions": [_version_text(each) for each in report.fitting_versions],
    }


def _prediction_part(prediction: Prediction) -> dict[str, Any]:
    """How the job goes under the settings that are asked about."""
    from vramscope_analysis.allocator import settings_dict, settings_text

    return {
        "settings": settings_dict(prediction.settings),
        "settings_text": settings_text(prediction.settings),
        "capacity_bytes": prediction.capacity.capacity_bytes,
        "limit_bytes": prediction.capacity.limit_bytes,
        "capacity_source": prediction.capacity.source,
        "least_refused_bytes": prediction.capacity.highest_bytes,
        **_outcome(prediction),
    }


def _outcome(prediction: Prediction) -> dict[str, Any]:
    return {
        "predicted_peak_reserved_bytes": prediction.peak_reserved_bytes,
        "predicted_peak_allocated_bytes": prediction.peak_allocated_bytes,
        "peak": None if prediction.peak is None else asdict(prediction.peak),
        "fragmentation_at_peak": prediction.fragmentation_at_peak,
        "rounding_waste_at_peak_bytes": prediction.rounding_waste_at_peak_bytes,
        "device_allocs": prediction.device_allocs,
        "device_frees": prediction.device_frees,
        "retries": prediction.retries,
        "oom": prediction.oom is not None,
        "out_of_memory": None if prediction.oom is None else asdict(prediction.oom),
        "end": None if prediction.end is None else asdict(prediction.end),
    }


def _advice_part(advice: Advice) -> dict[str, Any]:
    from vramscope_analysis.allocator import settings_dict

    part: dict[str, Any] = {
        "settings_text": advice.text,
        "settings": settings_dict(advice.candidate.settings),
        "is_recorded": advice.candidate.is_recorded,
        "limit_bytes": advice.candidate.limit_bytes,
        "limit_is_assumed": advice.candidate.limit_is_assumed,
        "gain_bytes": advice.gain_bytes,
        "more_device_allocs": advice.more_device_allocs,
        "more_device_frees": advice.more_device_frees,
        "more_retries": advice.more_retries,
        "more_rounding_waste_bytes": advice.more_rounding_waste_bytes,
        "changes": advice.changes,
        "is_worth_it": advice.is_worth_it,
        **_outcome(advice.prediction),
    }
    return {**part, "costs": cost_words(part)}


def _version_text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"

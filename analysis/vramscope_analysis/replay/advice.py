"""Which settings would have served a recorded job best: replay it under each of a fixed grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from vramscope_analysis.allocator import AllocatorSettings, Version, settings_text
from vramscope_analysis.allocator.settings import MIB, POWER2_DIVISION_SLOTS, UNLIMITED
from vramscope_analysis.replay.capacity_inference import infer_capacity
from vramscope_analysis.replay.prediction import predict
from vramscope_analysis.replay.prediction_result import Prediction
from vramscope_analysis.replay.recorded_replay import Progress
from vramscope_analysis.replay.recording import Recording

MAX_SPLIT_SIZES_MIB: Final = (32, 64, 128, 256, 512)
POWER2_DIVISIONS: Final = (2, 4, 8, 16)
GC_THRESHOLDS: Final = (0.6, 0.8)

EQUAL_WITHIN: Final = 0.01
"""Peaks that differ by less are equal: the next run of the same job differs by as much."""
WORTH_FRACTION: Final = 0.02
WORTH_BYTES: Final = 64 * MIB
"""A gain makes a change of settings worth it when it is as large as both."""


@dataclass(frozen=True)
class Candidate:
    """Settings to try.

    Args:
        settings: complete; what the grid does not vary is as recorded.
        is_recorded: these are the settings of the recorded job.
        limit_bytes: the memory limit of the process under which they are tried.
        limit_is_assumed: nobody gave that limit; it is the peak of the recorded job, because
            ``garbage_collection_threshold`` does nothing without one.
    """

    settings: AllocatorSettings
    is_recorded: bool = False
    limit_bytes: int | None = None
    limit_is_assumed: bool = False


@dataclass(frozen=True)
class Advice:
    """What a candidate would have gained and cost, against the recorded settings.

    Args:
        candidate: the settings.
        text: the value for ``PYTORCH_CUDA_ALLOC_CONF``; empty for PyTorch's defaults.
        prediction: how the job would have gone.
        gain_bytes: how much less would have been reserved at peak; below 0 is more.
        more_device_allocs: calls of cudaMalloc and of map beyond those of the recorded settings.
        more_device_frees: the same of cudaFree and of unmap.
        more_retries: times more that the whole cache was flushed to satisfy a request.
        more_rounding_waste_bytes: what was lost to rounding at peak beyond that.
        changes: options that differ from the recorded settings.
        is_worth_it: the gain is worth a change of settings.
    """

    candidate: Candidate
    text: str
    prediction: Prediction
    gain_bytes: int
    more_device_allocs: int
    more_device_frees: int
    more_retries: int
    more_rounding_waste_bytes: int
    changes: int
    is_worth_it: bool


def advise(
    recording: Recording,
    *,
    capacity_bytes: int | None = None,
    limit_bytes: int | None = None,
    version: Version | None = None,
    anew: bool = False,
    progress: Progress | None = None,
) -> list[Advice]:
    """Replay the job under every candidate and rank them, best first (see :func:`ranked`).

    Args:
        recording: the job. Its own settings are always one of the candidates.
        capacity_bytes: memory of the device; None is what the recording shows.
        limit_bytes: the process's own limit below that; None is what the recording shows.
        version: torch release to follow; None is the one that the recording was made with.
        anew: the job starts again with these settings (see :func:`predict`). Of a window that was
            recorded in the middle of a job this tells what the environment variable would gain;
            else segments that were there already stay as they are.
        progress: called with (entries replayed, entries to replay) over all candidates.
    """
    capacity = infer_capacity(
        recording, capacity_bytes=capacity_bytes, limit_bytes=limit_bytes, version=version
    )
    known_bytes = capacity.allowed_bytes
    grid = list(candidates(recording.settings))
    tried: list[Candidate] = []
    predictions: list[Prediction] = []
    for at, candidate in enumerate(grid):
        if candidate.is_recorded or not candidate.settings.garbage_collection_threshold:
            limited = replace(candidate, limit_bytes=limit_bytes)
        elif known_bytes is not None:
            limited = replace(candidate, limit_bytes=known_bytes)
        else:
            peak_bytes = predictions[0].peak_reserved_bytes
            limited = replace(candidate, limit_bytes=peak_bytes, limit_is_assumed=True)
        prediction = predict(
            recording,
            limited.settings,
            capacity_bytes=capacity_bytes,
            limit_bytes=limited.limit_bytes,
            version=version,
            anew=anew,
            progress=_part(progress, at, len(grid)),
        )
        if anew and candidate.is_recorded:
            # A window does not show in what order all was asked for that it began with: the job
            # is not to be told that it gains what it never lost.
            most_bytes = min(prediction.peak_reserved_bytes, recording.peak_reserved_bytes)
            prediction = replace(prediction, peak_reserved_bytes=most_bytes)
        tried.append(limited)
        predictions.append(prediction)
    return ranked(
        [compare(*pair, tried[0], predictions[0]) for pair in zip(tried, predictions, strict=True)]
    )


def recommended(advice: Sequence[Advice]) -> Advice | None:
    """The best of ranked advice that is worth a change; None is to keep the recorded settings."""
    return next((each for each in advice if each.is_worth_it), None)


def candidates(recorded: AllocatorSettings) -> Iterator[Candidate]:
    """The recorded settings, then the grid: each varies one option and has none of the others."""
    yield Candidate(recorded, is_recorded=True)
    plain = replace(
        recorded,
        expandable_segments=False,
        max_split_size_bytes=UNLIMITED,
        roundup_power2_divisions=(0,) * POWER2_DIVISION_SLOTS,
        garbage_collection_threshold=0.0,
    )
    for settings in _grid(plain):
        if settings != recorded:
            yield Candidate(settings)


def _grid(plain: AllocatorSettings) -> Iterator[AllocatorSettings]:
    yield plain
    yield replace(plain, expandable_segments=True)
    for size_mib in MAX_SPLIT_SIZES_MIB:
        # PyTorch refuses a size below that of the segments for requests from 1 to 10 MiB.
        if size_mib * MIB >= plain.large_segment_bytes:
            yield replace(plain, max_split_size_bytes=size_mib * MIB)
    for divisions in POWER2_DIVISIONS:
        yield replace(plain, roundup_power2_divisions=(divisions,) * POWER2_DIVISION_SLOTS)
    for threshold in GC_THRESHOLDS:
        yield replace(plain, garbage_collection_threshold=threshold)


def _part(progress: Progress | None, at: int, parts: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total: progress(at * total + done, parts * total)


def compare(
    candidate: Candidate, prediction: Prediction, recorded: Candidate, baseline: Prediction
) -> Advice:
    """What a candidate gains and costs against the recorded settings."""
    waste_bytes = prediction.rounding_waste_at_peak_bytes
    return Advice(
        candidate=candidate,
        text=settings_text(candidate.settings),
        prediction=prediction,
        gain_bytes=baseline.peak_reserved_bytes - prediction.peak_reserved_bytes,
        more_device_allocs=prediction.device_allocs - baseline.device_allocs,
        more_device_frees=prediction.device_frees - baseline.device_frees,
        more_retries=prediction.retries - baseline.retries,
        more_rounding_waste_bytes=waste_bytes - baseline.rounding_waste_at_peak_bytes,
        changes=_changes(candidate, recorded),
        is_worth_it=not candidate.is_recorded and _is_worth_it(prediction, baseline),
    )


def _changes(candidate: Candidate, recorded: Candidate) -> int:
    mine, theirs = vars(candidate.settings), vars(recorded.settings)
    changed = [option for option in mine if mine[option] != theirs[option]]
    return len(changed) + (candidate.limit_bytes != recorded.limit_bytes)


def _is_worth_it(prediction: Prediction, baseline: Prediction) -> bool:
    if prediction.oom is not None:
        return False
    if baseline.oom is not None:
        return True
    if (prediction.retries > 0) != (baseline.retries > 0):
        return baseline.retries > 0
    gain_bytes = baseline.peak_reserved_bytes - prediction.peak_reserved_bytes
    return gain_bytes >= max(WORTH_BYTES, WORTH_FRACTION * baseline.peak_reserved_bytes)


def ranked(advice: Sequence[Advice]) -> list[Advice]:
    """Order advice, best first.

    What never runs out of memory comes first, and of that what never retries. Then comes what is
    worth a change, and of that, what needs a memory limit that nobody gave comes last: under
    another limit it gains something else. Then peak reserved decides, where peaks within 1 % are
    equal, then device allocations and the number of changes. Of what runs out of memory, what
    gets further comes first.
    """
    completed = [each for each in advice if each.prediction.oom is None]
    classes: dict[tuple[bool, int], list[Advice]] = {}
    for each in completed:
        classes.setdefault((each.prediction.retries > 0, _worth_rank(each)), []).append(each)
    return [
        *(each for key in sorted(classes) for each in _by_peak(classes[key])),
        *sorted((each for each in advice if each.prediction.oom is not None), key=_failure_rank),
    ]


def _worth_rank(advice: Advice) -> int:
    if not advice.is_worth_it:
        return 2
    return 1 if advice.candidate.limit_is_assumed else 0


def _by_peak(advice: Sequence[Advice]) -> Iterator[Advice]:
    # "Within 1 %" is no order of its own (a = b and b = c, but not a = c): peaks are gathered
    # into groups, each beginning with its smallest.
    groups: list[list[Advice]] = []
    for each in sorted(advice, key=_peak_bytes):
        if groups and _peak_bytes(each) <= _peak_bytes(groups[-1][0]) * (1 + EQUAL_WITHIN):
            groups[-1].append(each)
        else:
            groups.append([each])
    for group in groups:
        yield from sorted(group, key=_effort_rank)


def _peak_bytes(advice: Advice) -> int:
    return advice.prediction.peak_reserved_bytes


def _effort_rank(advice: Advice) -> tuple[int, int, int]:
    return advice.prediction.device_allocs, advice.changes, _peak_bytes(advice)


def _failure_rank(advice: Advice) -> tuple[int, int]:
    oom = advice.prediction.oom
    return (-oom.event, oom.needed_bytes) if oom is not None else (0, 0)

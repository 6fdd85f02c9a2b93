"""The finding ``thrash``: steps are slow because the allocator keeps asking the device for memory.

A request that finds no place makes the allocator give back its whole cache and wait for the
device; what was given back has to be taken anew in the next step. Now and then that does no harm,
and in the first steps it is normal: sizes are new, and libraries try their algorithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.advisor import advise
from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.head_room import allocator_limit, needed
from vramscope_analysis.diagnosis.settings_advice import read_settings, settings_remedies
from vramscope_analysis.diagnosis.trial_steps import trial_steps
from vramscope_analysis.diagnosis.words import count_text, fitting, share_text, size_text
from vramscope_analysis.evidence.columns import Numbers, Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "thrash"
WINDOW_STEPS: Final = 100
WARM_UP_STEPS: Final = 20
MIN_STEPS: Final = 10
MIN_FLUSHES: Final = 3
RECENT_STEPS: Final = 50
"""What has not happened for so long is over."""
AFTER_PHASE_STEPS: Final = 3
COSTLY_SHARE: Final = 0.02
"""Less of the step time than this is not worth a warning."""
CALLS_A_STEP: Final = 4
"""So many calls for device memory in each step are no accident."""
_MIN_PLAIN_STEPS: Final = 10


@dataclass(frozen=True)
class Window:
    """The last steps after warm-up, with what happened within each.

    Args:
        rows: the steps.
        number: of each.
        flushes: times that the whole cache was given back for a request; none in steps that try
            kernels for a new shape.
        taken, given: calls that took memory from the device, and that gave some back.
        emptied: times that the cache was emptied otherwise.
        duration_us: of each step; NaN is not known.
    """

    rows: Rows
    number: NDArray[np.int64]
    flushes: Numbers
    taken: Numbers
    given: Numbers
    emptied: Numbers
    duration_us: Numbers


def thrash(rank: RankEvidence) -> list[Finding]:
    """Judge the last steps: flushes, and memory that is taken anew in every step."""
    window = window_of(rank)
    if window is None:
        return []
    if window.flushes.sum():
        return _flushing(rank, window)
    return _emptying(rank, window)


def window_of(rank: RankEvidence) -> Window | None:
    """The last steps after warm-up; None if there are none, or what happened is not known."""
    first = max(WARM_UP_STEPS, len(rank.steps) - WINDOW_STEPS)
    # One row more: what happened in a step is the difference to the row before.
    rows = rank.steps.after(first - 1)
    if len(rows) < 2 or rows.number is None:
        return None
    flushes = _happened(rows, "num_alloc_retries")
    if np.isnan(rows.numbers("num_alloc_retries")).all():
        return None
    return Window(
        rows=rows.after(1),
        number=rows.number[1:],
        flushes=np.where(trial_steps(rows)[1:], 0, flushes),
        taken=_happened(rows, "num_device_alloc"),
        given=_happened(rows, "num_device_free"),
        emptied=np.maximum(_happened(rows, "num_sync_all_streams") - flushes, 0),
        duration_us=rows.numbers("step.duration_us")[1:],
    )


def lost_share(window: Window, marked: NDArray[Any]) -> float | None:
    """Part of the time that steps of one kind took longer than the others; None is not known."""
    known = np.isfinite(window.duration_us)
    plain = window.duration_us[known & ~marked]
    if len(plain) < _MIN_PLAIN_STEPS:
        return None
    usual = float(np.median(plain))
    longer = np.maximum(window.duration_us[known & marked] - usual, 0)
    return float(longer.sum() / window.duration_us[known].sum())


def _flushing(rank: RankEvidence, window: Window) -> list[Finding]:
    marked = window.flushes > 0
    times = int(window.flushes.sum())
    if not marked[-RECENT_STEPS:].any():
        return []
    phase = _phase_before(rank, window.number[marked])
    if phase:
        return [_after_phase(rank, window, phase, times)]
    if marked.sum() < MIN_FLUSHES or len(marked) < MIN_STEPS:
        return []
    share = lost_share(window, marked)
    of = f"{count_text(times, 'time', 'times')} in the last {count_text(len(marked), 'step')}"
    cost = "" if share is None else f", {share_text(share)} of the step time"
    is_dear = share >= COSTLY_SHARE if share is not None else times >= 0.1 * len(marked)
    remedies = (*settings_remedies(rank.settings, rank.trials), *advise(rank))
    return [
        Finding(
            KIND,
            "warning" if is_dear else "info",
            fitting(f"Slow: the cache was flushed {of}{cost}."),
            _evidence(rank, window, times, share),
            0.95 if share is not None else 0.8,
            remedies=remedies,
            detail=_why(rank, window, marked),
            since_step=_since(rank, "num_alloc_retries"),
        )
    ]


def _after_phase(rank: RankEvidence, window: Window, phase: str, times: int) -> Finding:
    """Flushes that only come where a phase has left blocks of other sizes behind."""
    marked = window.flushes > 0
    word = {"eval": "evaluation"}.get(phase, phase)
    share = lost_share(window, marked)
    is_repeated = marked.sum() > 1
    return Finding(
        KIND,
        "warning" if is_repeated and (share is None or share >= COSTLY_SHARE) else "info",
        fitting(
            f"The cache was flushed {count_text(times, 'time')} at the {word}: "
            "its blocks and those of training do not fit each other.",
            f"The cache was flushed {count_text(times, 'time')} at the {word}.",
        ),
        _evidence(rank, window, times, share),
        0.9,
        remedies=(
            Remedy(
                f"empty the cache at the end of the {word}",
                f"Training then takes whole segments again in place of what the {word} left.",
                None,
                "some milliseconds each time, and memory that has to be taken anew",
                "torch.cuda.empty_cache()",
            ),
            Remedy(
                f"use smaller batches in the {word}",
                "It then leaves smaller blocks, and fits into what training has.",
                None,
                f"the {word} takes longer",
            ),
        ),
        detail=f"Within {AFTER_PHASE_STEPS} steps of its end, and never else in the last "
        f"{count_text(len(window.number), 'step')}.",
        subject=f"after {phase}",
        since_step=_since(rank, "num_alloc_retries"),
    )


def _emptying(rank: RankEvidence, window: Window) -> list[Finding]:
    """Memory that goes back to the device and comes again in nearly every step, without need."""
    marked = (window.taken >= CALLS_A_STEP) & (window.given >= 1)
    if len(marked) < RECENT_STEPS or marked.mean() < 0.8 or not marked[-5:].any():
        return []
    if window.given.sum() < 0.5 * window.taken.sum():
        return []  # it grows: that is another question
    calls = float(np.median(window.taken))
    is_emptied = bool((window.emptied >= 1).mean() >= 0.8)
    settings = read_settings(rank.settings)
    is_collected = settings is not None and settings.garbage_collection_threshold > 0
    if not is_emptied and not is_collected:
        return []  # nothing that we know of does that
    cause = "the job empties its cache" if is_emptied else "garbage_collection_threshold is set"
    share = lost_share(window, marked)
    remedy = Remedy(
        "leave out torch.cuda.empty_cache() in the loop"
        if is_emptied
        else "raise garbage_collection_threshold, or leave it out",
        "The next step takes the same memory again; its cache is not in anybody's way.",
        None,
        "the memory stays reserved between steps",
    )
    return [
        Finding(
            KIND,
            "warning" if share is not None and share >= COSTLY_SHARE else "info",
            fitting(f"{count_text(calls, 'call')} for device memory in every step: {cause}."),
            {
                "series": "num_device_alloc",
                "device_allocs_per_step": calls,
                "steps": len(marked),
                "lost_share": share,
            },
            0.9,
            remedies=(remedy,),
            detail="What a step gives back, the next one has to take from the device again.",
            subject="every step",
            since_step=_since(rank, "num_device_free"),
        )
    ]


def _evidence(
    rank: RankEvidence, window: Window, times: int, share: float | None
) -> dict[str, Any]:
    most = needed(window.rows)
    most = most[np.isfinite(most)]
    return {
        "series": "num_alloc_retries",
        "flushes": times,
        "steps": len(window.number),
        "lost_share": share,
        "device_allocs_per_step": float(window.taken.mean()),
        "needed_bytes": int(most.max()) if len(most) else None,
        "limit_bytes": allocator_limit(rank),
        "since_step": _since(rank, "num_alloc_retries"),
    }


def _why(rank: RankEvidence, window: Window, marked: NDArray[np.bool_]) -> str:
    """Whether there was too little memory in those steps, or enough of it and in pieces."""
    limit_bytes = allocator_limit(rank)
    most = needed(window.rows)[marked]
    most = most[np.isfinite(most)]
    if limit_bytes is None or not len(most):
        return "Each time the allocator gave everything back and took it anew."
    of = f"{size_text(float(np.median(most)))} of {size_text(limit_bytes)}"
    if np.median(most) >= 0.9 * limit_bytes:
        return f"These steps need {of}: there is too little memory."
    return f"These steps need {of}: there is enough, but not in pieces of the right sizes."


def _phase_before(rank: RankEvidence, steps: NDArray[np.int64]) -> str:
    """The phase that ended shortly before each of these steps; empty if there is no such."""
    names = {stretch.name for stretch in rank.stretches}
    for name in sorted(names):
        begins = np.array(
            [s.step for s in rank.stretches if s.name == name and s.step is not None], np.int64
        )
        if not len(begins):
            continue
        # The row that a phase lies in has the next number: what follows it comes from there on.
        at = np.searchsorted(np.sort(begins), steps) - 1
        behind = steps - np.sort(begins)[np.maximum(at, 0)]
        if ((at >= 0) & (behind <= AFTER_PHASE_STEPS)).all():
            return name
    return ""


def _since(rank: RankEvidence, name: str) -> int | None:
    """The step from which on it has happened again and again, warm-up left out."""
    rows = rank.steps.after(WARM_UP_STEPS - 1)
    if rows.number is None:
        return None
    steps = rows.number[1:][_happened(rows, name) > 0]
    pauses = np.flatnonzero(np.diff(steps) > WINDOW_STEPS)
    return int(steps[pauses[-1] + 1 if len(pauses) else 0]) if len(steps) else None


def _happened(rows: Rows, name: str) -> Numbers:
    """By how much a counter rose within each row but the first; 0 where it is not known."""
    risen = np.diff(rows.numbers(name))
    return np.where(np.isfinite(risen) & (risen > 0), risen, 0.0)

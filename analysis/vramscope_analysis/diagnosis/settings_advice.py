"""Which settings of the allocator may be advised: those that a replay proved, no pair that clashes.

A text that tells everybody to turn on an option helps nobody who has it on already, and what helps
one job costs another. So nothing is advised here that was not tried on the job's own recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from vramscope_analysis.allocator import AllocatorSettings, SettingsError, parse_settings
from vramscope_analysis.allocator.settings import UNLIMITED
from vramscope_analysis.allocator.settings_parser import OTHER_OPTION_SINCE
from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.words import count_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_analysis.replay import Advice

VARIABLE: Final = "PYTORCH_CUDA_ALLOC_CONF"
SUBJECT: Final = "allocator settings"
MOST_REMEDIES: Final = 2
_EXPANDABLE: Final = "expandable_segments"
_SPLIT: Final = "max_split_size_mb"
_OTHER_BACKEND: Final = "backend:cudaMallocAsync"
"""With it there is no caching allocator of PyTorch's that could be set."""


@dataclass(frozen=True)
class SettingsConflict:
    """Options that make no sense together.

    Args:
        options: their names.
        why: what goes wrong, in one sentence.
        fix: the settings without the one that does nothing.
    """

    options: tuple[str, ...]
    why: str
    fix: str


def read_settings(text: str | None) -> AllocatorSettings | None:
    """Settings as values; None is not known, or not understood.

    Args:
        text: as in ``PYTORCH_CUDA_ALLOC_CONF``; empty is PyTorch's defaults.
    """
    if text is None:
        return None
    try:
        return parse_settings(text)
    except (SettingsError, ValueError):
        return None


def conflicts_in(text: str | None) -> tuple[SettingsConflict, ...]:
    """Options of the settings in force that clash."""
    settings = read_settings(text)
    if text is None or settings is None or not _clashes(settings):
        return ()
    kept = [part for part in _parts(text) if _name(part) != _SPLIT]
    return (
        SettingsConflict(
            (_EXPANDABLE, _SPLIT),
            "with expandable segments nothing is split by size, and near the limit the two have "
            "hit an assertion of the allocator",
            ",".join(kept),
        ),
    )


def may_advise(current: str | None, proposed: str) -> bool:
    """Whether these settings may be proposed to a job with those.

    Args:
        current: settings in force; None is not known: then nothing is proposed.
        proposed: the complete text that would take their place.
    """
    now, then = read_settings(current), read_settings(proposed)
    if current is None or now is None or then is None or now == then:
        return False
    return not _clashes(then) and _OTHER_BACKEND not in current.replace(" ", "")


def trials_of(advice: Iterable[Advice]) -> tuple[SettingsTrial, ...]:
    """What a replay under the grid of settings said, in its order."""
    return tuple(SettingsTrial.of(each) for each in advice)


def settings_remedies(current: str | None, trials: Sequence[SettingsTrial]) -> tuple[Remedy, ...]:
    """Settings that the replay proved to be worth a change, the best first.

    Args:
        current: settings in force; None is not known: those of the recorded window count.
        trials: of the newest recorded window.
    """
    recorded = next((trial for trial in trials if trial.is_recorded), None)
    if recorded is None or (current is not None and not _is_same(current, recorded.text)):
        return ()  # the window was recorded under other settings than those in force
    now = recorded.text if current is None else current
    found = [
        trial
        for trial in trials
        if trial.is_worth_it and not trial.runs_out and may_advise(now, trial.text)
    ]
    others = [part for part in _parts(now) if _name(part) in OTHER_OPTION_SINCE]
    return tuple(_remedy(trial, recorded, others) for trial in found[:MOST_REMEDIES])


def refuted(current: str | None, trials: Sequence[SettingsTrial]) -> tuple[str, ...]:
    """Settings that were tried and do not help, in words."""
    recorded = next((trial for trial in trials if trial.is_recorded), None)
    if recorded is None or (current is not None and not _is_same(current, recorded.text)):
        return ()
    return tuple(
        _refutation(trial)
        for trial in trials
        if not trial.is_recorded and (trial.runs_out or not trial.is_worth_it)
    )


def settings_conflict(rank: RankEvidence) -> list[Finding]:
    """Judge the settings in force: options that clash."""
    return [
        Finding(
            "fragmentation",
            "warning",
            f"{' and '.join(conflict.options)} are both set; they exclude each other.",
            {"settings": rank.settings, "options": list(conflict.options)},
            remedies=(
                Remedy(
                    f"remove {conflict.options[1]}",
                    f"{conflict.why}.",
                    cost="takes effect at the next start",
                    fix=f"{VARIABLE}={conflict.fix}",
                ),
            ),
            detail=f"{conflict.why[0].upper()}{conflict.why[1:]}.",
            subject=SUBJECT,
        )
        for conflict in conflicts_in(rank.settings)
    ]


def _clashes(settings: AllocatorSettings) -> bool:
    return settings.expandable_segments and settings.max_split_size_bytes != UNLIMITED


def _is_same(one: str, other: str) -> bool:
    values = read_settings(one)
    return values is not None and values == read_settings(other)


def _remedy(trial: SettingsTrial, recorded: SettingsTrial, others: Sequence[str]) -> Remedy:
    """The change as a remedy; options that the replay knows nothing of stay as they are."""
    if recorded.runs_out:
        gain = "with it the recorded steps do not run out of memory"
    elif recorded.retries and not trial.retries:
        flushes = count_text(recorded.retries, "cache flush", "cache flushes")
        gain = f"the recorded steps go without their {flushes}"
    else:
        gain = (
            f"{size_text(trial.peak_reserved_bytes)} reserved at the peak of the recorded steps, "
            f"{size_text(trial.gain_bytes)} less than now"
        )
    assumed = ", if the process is limited to that peak" if trial.limit_is_assumed else ""
    calls = trial.more_device_allocs
    cost = f"{count_text(calls, 'more call')} for device memory in the recorded steps; " * (
        calls > 0
    )
    text = ",".join([*([trial.text] if trial.text else []), *others])
    return Remedy(
        f"set {trial.text}" if trial.text else "go back to PyTorch's default settings",
        f"Replayed: {gain}{assumed}.",
        max(trial.gain_bytes, 0) or None,
        f"{cost}takes effect at the next start",
        f"{VARIABLE}={text}" if text else f"unset {VARIABLE}",
    )


def _refutation(trial: SettingsTrial) -> str:
    name = trial.text or "PyTorch's defaults"
    if trial.runs_out:
        return f"{name}: runs out of memory"
    if trial.gain_bytes < 0:
        return f"{name}: {size_text(-trial.gain_bytes)} more"
    return f"{name}: {size_text(trial.gain_bytes)} less"


def _name(part: str) -> str:
    return part.partition(":")[0].strip()


def _parts(text: str) -> list[str]:
    """The options of a text; a comma within brackets parts none."""
    parts = [""]
    depth = 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]

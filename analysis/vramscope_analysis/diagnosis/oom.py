"""The finding ``oom``: a process ran out of memory, and why.

A failure that the job survived is a warning: a batch was lost, or done again. One that came from a
search for the largest batch was asked for, and is only worth knowing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import SEVERITIES, Culprit, Finding, Severity
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import Cause, causes_of, held_by
from vramscope_analysis.diagnosis.oom_remedies import growth_verdict, remedies_of
from vramscope_analysis.diagnosis.oom_words import detail_of, facts_of, summary_of, title_of
from vramscope_analysis.diagnosis.settings_advice import refuted
from vramscope_analysis.diagnosis.words import count_text, size_text
from vramscope_analysis.evidence.entry_values import (
    Entry,
    amount_in,
    entries_in,
    entry_in,
    text_in,
    texts_in,
)
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_analysis.evidence.settings_trial import SettingsTrial

KIND: Final = "oom"
_MOST_JUDGED: Final = 8
_MOST_NAMED: Final = 8
_MOST_PINS: Final = 3


def oom(rank: RankEvidence) -> list[Finding]:
    """Judge every report of a rank; those of one line are one finding."""
    found: dict[str, list[tuple[OomReport, Finding]]] = {}
    # Who runs out again and again does so at one line: the last times tell which.
    for report in sorted(rank.ooms, key=lambda report: report.time_ns)[-_MOST_JUDGED:]:
        finding = diagnose_oom(report, rank)
        found.setdefault(finding.subject, []).append((report, finding))
    return [_together(same) for same in found.values()]


def diagnose_oom(
    report: OomReport,
    rank: RankEvidence | None = None,
    *,
    trials: Sequence[SettingsTrial] = (),
) -> Finding:
    """Judge one report.

    Args:
        report: what was written down when memory ran out.
        rank: what else is known of the process; its rows count up to the failure.
        trials: what a replay of a recording of it said; without, those of the rank.
    """
    case = OomCase.of(report, rank, trials)
    causes = causes_of(case)
    main = causes[0]
    return Finding(
        KIND,
        _severity(case),
        summary_of(case, main),
        _evidence(case, causes),
        confidence=main.confidence,
        culprits=_culprits(case, main),
        remedies=remedies_of(case, causes),
        detail=detail_of(case, causes),
        subject=_subject(case),
        since_step=report.step,
    )


def _together(same: list[tuple[OomReport, Finding]]) -> Finding:
    """The newest, with the number of times; as severe as the worst of them."""
    report, finding = same[-1]
    worst = max((each.severity for _, each in same), key=SEVERITIES.index)
    times = sum(1 + each.skipped for each, _ in same)
    detail = finding.detail
    if times > 1:
        first = same[0][0].step
        since = "" if first is None or first == report.step else f" since step {first:,}"
        detail = f"{detail} It happened {times:,} times{since}.".strip()
    evidence = {
        **finding.evidence,
        "times": times,
        "reports": [each.id for each, _ in same][-_MOST_NAMED:],
    }
    return replace(finding, severity=worst, detail=detail, evidence=evidence)


def _severity(case: OomCase) -> Severity:
    if case.report.recovered_step is None and case.report.source != "counter":
        return "critical"
    return "info" if case.is_search else "warning"


def _subject(case: OomCase) -> str:
    """The line that asked: what is learnt later may change the cause, but not that."""
    return case.place.short if case.place else case.phase


def _culprits(case: OomCase, cause: Cause) -> tuple[Culprit, ...]:
    """What keeps the memory where that is known, and the line that asked."""
    culprits: list[Culprit] = []
    if cause.name in ("retained_exception", "garbage"):
        kind = "exception" if cause.name == "retained_exception" else "garbage"
        culprits += [_holder(t) for t in held_by(case.report.largest, kind)]
    verdict = growth_verdict(case) if cause.name == "growth" else None
    if verdict is not None:
        culprits += verdict.culprits
    if cause.name == "fragmentation":
        culprits += _lasting(case)
    if case.place is not None:
        place = case.place
        culprits.append(
            Culprit(place.file, place.line, place.function, case.shortage.request_bytes)
        )
    return _merged(culprits)


def _merged(culprits: list[Culprit]) -> tuple[Culprit, ...]:
    """Those that differ in nothing but their bytes are one."""
    same: dict[Culprit, list[int | None]] = {}
    for culprit in culprits:
        same.setdefault(replace(culprit, bytes=None), []).append(culprit.bytes)
    merged: list[Culprit] = []
    for culprit, sizes in same.items():
        known = [size for size in sizes if size is not None]
        tensors = culprit.tensors
        if len(sizes) > 1 and tensors:
            tensors = (f"{count_text(len(sizes))} of {tensors[0]}", *tensors[1:])
        merged.append(replace(culprit, bytes=sum(known) if known else None, tensors=tensors))
    return tuple(merged)


def _lasting(case: OomCase) -> list[Culprit]:
    """What lies in the segments with the free pieces: live blocks, the largest sizes first.

    A tensor that has the size of such a block and is no part of the model is named with its holder.
    """
    culprits: list[Culprit] = []
    for row in case.report.free_blocks:
        for block in entries_in(row, "pinned_by") if row.get("pool") == "large" else ():
            size, count = amount_in(block, "requested_bytes"), amount_in(block, "count")
            if not size or case.is_of_same_kind(size):
                continue  # no more in the way than what was asked for
            same = [t for t in case.report.largest if t.get("bytes") == size]
            named = next((t for t in same if not t.get("category") and t.get("held_by")), None)
            words = f"{count_text(count, 'block')} of {size_text(size)}"
            tensors = (f"{words}: {text_in(named, 'tensor')}",) if named else (words,)
            culprits.append(
                replace(
                    _holder(named or {}),
                    bytes=amount_in(block, "bytes") or None,
                    tensors=tensors,
                )
            )
    return culprits[:_MOST_PINS]


def _holder(tensor: Entry) -> Culprit:
    holder = entry_in(tensor, "holder")
    frame = entry_in(holder, "stored_at") or entry_in(holder, "frame")
    words = text_in(tensor, "tensor")
    held = texts_in(tensor, "held_by") or texts_in(holder, "chain")[::-1]
    return Culprit(
        text_in(frame, "file"),
        amount_in(frame, "line"),
        text_in(frame, "function"),
        amount_in(tensor, "bytes") or None,
        tensors=(words,) if words else (),
        held_by=tuple(held[:_MOST_NAMED]),
    )


def _evidence(case: OomCase, causes: list[Cause]) -> dict[str, Any]:
    shortage, demand = case.shortage, case.demand
    growing = demand.growing
    return {
        "report": case.report.id,
        "cause": causes[0].name,
        "title": title_of(causes[0]),
        "facts": facts_of(case, causes[0]),
        "causes": [
            {"name": c.name, "confidence": c.confidence, "bytes": c.bytes, "who": c.who}
            for c in causes
        ],
        "step": case.report.step,
        "phase": case.report.phase,
        "part": case.report.part,
        "line": case.place.text if case.place else None,
        "request_bytes": shortage.request_bytes,
        "missing_bytes": shortage.missing_bytes,
        "room_bytes": shortage.room_bytes,
        "largest_free_bytes": shortage.largest_bytes,
        "free_in_pieces_bytes": shortage.pieces_bytes,
        "returnable_bytes": shortage.returnable_bytes,
        "allocated_bytes": shortage.allocated_bytes,
        "reserved_bytes": shortage.reserved_bytes,
        "allowed_bytes": shortage.allowed_bytes,
        "limit_is_own": shortage.limit_is_own,
        "needed_bytes": shortage.needed_bytes,
        "constant_bytes": demand.constant_bytes,
        "activations_bytes": case.scaling_bytes,
        "usual_peak_bytes": demand.usual_peak_bytes,
        "highest_peak_bytes": demand.highest_peak_bytes,
        "lowest_peak_bytes": demand.lowest_peak_bytes,
        "slope_bytes_per_step": growing.per_step if growing else None,
        "kept_bytes": demand.kept.bytes if demand.kept else None,
        "batch_size": demand.batch,
        "recovered_step": case.report.recovered_step,
        "is_search": case.is_search,
        "tried": list(refuted(case.settings, case.trials)),
    }

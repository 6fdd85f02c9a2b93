"""The finding ``retention``: memory that is kept without growing, or that goes back by itself."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.evaluation_ramp import EvaluationRamp, evaluation_ramp
from vramscope_analysis.diagnosis.finding import Culprit, Finding, Remedy, Severity
from vramscope_analysis.diagnosis.growth_evidence import growth_evidence, pace_text, since_text
from vramscope_analysis.diagnosis.growth_group import lines_of, main_holder
from vramscope_analysis.diagnosis.growth_reading import GrowthReading, growth_reading
from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.diagnosis.held_memory import HeldMemory, held_memory
from vramscope_analysis.diagnosis.holder_words import holder_name, remedies_of, title_of
from vramscope_analysis.diagnosis.ramp_holder import GRAPH, ramp_group
from vramscope_analysis.diagnosis.words import count_text, fitting, place_text, size_text
from vramscope_analysis.evidence.growth_report import GrowthGroup, Holder
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "retention"

PEAK: Final = "step.peak_allocated_bytes"
_DECIDES: Final = 1.2
"""An evaluation that peaks so many times higher than training decides what fits."""
_TIGHT: Final = 0.6


def retention(rank: RankEvidence) -> list[Finding]:
    """Judge what is kept, or builds up for a while.

    Args:
        rank: what is known of it.
    """
    reading = growth_reading(rank)
    return [
        *_shared(reading),
        *(_held(held) for held in held_memory(rank) if not held.is_exception),
        *_in_evaluation(rank, reading),
    ]


def _shared(reading: GrowthReading) -> list[Finding]:
    """Growth that another process holds."""
    growth, verdict = reading.growth, reading.verdict
    if growth is None or verdict is None or verdict.kind != KIND:
        return []
    place = f" at {verdict.place}" if verdict.place else ""
    pace = pace_text(growth, reading.staircase)
    return [
        Finding(
            KIND,
            "warning" if reading.forecast is None else "critical",
            f"Another process keeps {pace}{place} alive: memory shared by CUDA IPC.",
            growth_evidence(reading, growth)
            | {"title": title_of(verdict), "share": round(verdict.share, 2)},
            0.85,
            culprits=verdict.culprits,
            remedies=remedies_of(verdict, int(growth.grown_bytes)),
            detail=f"{since_text(growth)} Nothing in this process refers to it any more.",
            subject=verdict.place or "CUDA IPC",
            since_step=growth.since_step,
        )
    ]


def _held(held: HeldMemory) -> Finding:
    group, holder = held.group, main_holder(held.group)
    chain = () if holder is None else holder.chain
    name = holder_name(chain) or "something unknown"
    lines = lines_of(group)
    frame = lines[0] if lines else None
    place = f", {place_text(frame.file, frame.line)}" if frame is not None else ""
    size, step = size_text(group.bytes), count_text(held.since_step)
    came = "have stayed since" if held.rise is not None else "are not used any more since"
    evidence: dict[str, Any] = {
        "title": f"Kept by {name}",
        "since_step": held.since_step,
        "held_bytes": group.bytes,
        "category": group.category,
        "facts": _held_facts(held),
    }
    culprit = Culprit(
        "" if frame is None else frame.file,
        0 if frame is None else frame.line,
        "" if frame is None else frame.function,
        group.bytes,
        None,
        group.tensors,
        chain,
    )
    return Finding(
        KIND,
        "info",
        fitting(
            f"{size} {came} step {step}, held by {name}{place}.",
            f"{size} {came} step {step}, held by {name}.",
            f"{size} {came} step {step}.",
        ),
        evidence,
        0.8,
        culprits=(culprit,),
        remedies=_held_remedies(name, group.bytes, group.category),
        detail="It does not grow. If it is not needed any more, letting go of it frees it at once.",
        subject=name,
        since_step=held.since_step,
    )


def _held_facts(held: HeldMemory) -> list[str]:
    facts: list[str] = []
    if held.rise is not None:
        facts.append(
            f"Memory rose by {size_text(held.rise.bytes)} at step {count_text(held.rise.step)} "
            "and has not come back."
        )
    if held.group.category:
        facts.append("No optimizer has stepped on it since.")
    return facts


def _held_remedies(name: str, held_bytes: int, category: str) -> tuple[Remedy, ...]:
    """What helps against a name that still refers to something large."""
    remedies = [
        Remedy(
            f"Let go of {name} where it is held",
            "A del inside a function that got it as an argument takes away only its own name.",
            held_bytes,
            fix=f"del {name}" if name.isidentifier() else f"{name} = None",
        )
    ]
    if not category:
        remedies.append(
            Remedy(
                "Load or keep it on the CPU",
                "What is only read once, or copied into the optimizer, needs no place on the GPU.",
                held_bytes,
                fix='torch.load(path, map_location="cpu")',
            )
        )
    return tuple(remedies)


def _in_evaluation(rank: RankEvidence, reading: GrowthReading) -> list[Finding]:
    ramp = evaluation_ramp(rank, reading.floors)
    if ramp is None:
        return []
    group = ramp_group(rank, ramp)
    where = "Evaluation" if ramp.name in ("", "eval") else ramp.name.capitalize()
    size = size_text(ramp.bytes)
    times = count_text(len(ramp.steps), "time")
    if not ramp.name:
        sentence = (
            f"{size} build up between two steps, piece by piece, and go again: {times} so far."
        )
    else:
        sentence = f"{where} keeps {size} until it ends: memory rises with every batch, then goes."
    return [
        Finding(
            KIND,
            _ramp_severity(rank, ramp),
            sentence,
            {
                "title": "Kept until the evaluation ends",
                "held_bytes": int(ramp.bytes),
                "peak_bytes": int(ramp.top_bytes),
                "rises": list(ramp.steps),
                "phase": ramp.name,
                "facts": ["The next step ends where the one before had ended: no leak."],
            },
            0.8 if ramp.name else 0.7,
            culprits=() if group is None else (_ramp_culprit(group),),
            remedies=_ramp_remedies(ramp, None if group is None else main_holder(group)),
            detail=f"{_ramp_holder(group)}It comes back each time, so it is no leak across "
            "evaluations; with more batches it gets higher.",
            subject=ramp.name or "between steps",
            since_step=ramp.steps[0],
        )
    ]


def _ramp_holder(group: GrowthGroup | None) -> str:
    holder = None if group is None else main_holder(group)
    if group is None or holder is None or not holder.chain:
        return ""
    name, line = holder_name(holder.chain), holder.stored_at or holder.frame
    place = f" ({place_text(line.file, line.line)})" if line is not None else ""
    if holder.kind == GRAPH:
        return f"{name}{place} keeps the graph of every batch. "
    return f"{name}{place} keeps {group.tensors[0] if group.tensors else 'it'}. "


def _ramp_culprit(group: GrowthGroup) -> Culprit:
    holder = main_holder(group)
    line = None if holder is None else holder.stored_at or holder.frame
    return Culprit(
        "" if line is None else line.file,
        0 if line is None else line.line,
        "" if line is None else line.function,
        group.bytes or None,
        None,
        group.tensors,
        () if holder is None else holder.chain,
    )


def _ramp_remedies(ramp: EvaluationRamp, holder: Holder | None) -> tuple[Remedy, ...]:
    """What helps: all of it as long as nobody knows what is kept."""
    kept = int(ramp.bytes)
    reduce = Remedy(
        "Reduce each batch's result, or move it to the CPU",
        "What is kept for the end then takes no GPU memory.",
        kept,
        fix="outputs.append(output.argmax(-1).cpu())",
    )
    unread = Remedy(
        "Return nothing that nobody reads",
        "Some trainers collect whatever an evaluation step returns until the end.",
        kept,
    )
    name = "h" if holder is None else holder_name(holder.chain) or "h"
    detach = Remedy(
        "Evaluate without gradients; detach a state that is carried from batch to batch",
        "With its history it keeps the graph of every batch before.",
        kept,
        fix=f"with torch.no_grad(): ...   # in training: {name} = {name}.detach()",
    )
    if holder is not None and holder.kind == GRAPH:
        return (detach,)
    # A phase that is known to be an evaluation has its gradients off, as a rule.
    is_known = holder is not None or ramp.name != ""
    return (reduce, unread) if is_known else (reduce, detach, unread)


def _ramp_severity(rank: RankEvidence, ramp: EvaluationRamp) -> Severity:
    """A warning where the evaluation decides how much memory the job needs, and that is much."""
    limit = allocator_limit(rank)
    peaks = rank.steps.numbers(PEAK)
    peaks = peaks[~np.isnan(peaks)]
    if limit is None or not len(peaks) or ramp.top_bytes < _TIGHT * limit:
        return "info"
    return "warning" if ramp.top_bytes >= _DECIDES * float(np.median(peaks)) else "info"

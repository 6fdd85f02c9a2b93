"""The finding ``retention`` of an evaluation: what it gathers until it ends, and who holds it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.evaluation_ramp import EvaluationRamp, evaluation_ramp
from vramscope_analysis.diagnosis.finding import Culprit, Finding, Remedy, Severity
from vramscope_analysis.diagnosis.growth_group import chain_of, lines_of, main_holder
from vramscope_analysis.diagnosis.growth_reading import GrowthReading
from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.diagnosis.holder_words import holder_name
from vramscope_analysis.diagnosis.ramp_holder import GRAPH, ramp_group
from vramscope_analysis.diagnosis.words import count_text, fitting, size_text
from vramscope_analysis.evidence.growth_report import GrowthGroup
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "retention"
PEAK: Final = "step.peak_allocated_bytes"
_DECIDES: Final = 1.2
"""An evaluation that peaks so many times higher than training decides what fits."""
_TIGHT: Final = 0.6


def in_evaluation(rank: RankEvidence, reading: GrowthReading) -> list[Finding]:
    """Judge what builds up inside of evaluations.

    Args:
        rank: what is known of it.
        reading: of its growth.
    """
    ramp = evaluation_ramp(rank, reading.floors)
    if ramp is None:
        return []
    group = ramp_group(rank, ramp)
    return [
        Finding(
            KIND,
            _severity(rank, ramp),
            _sentence(ramp, group),
            _evidence(ramp, group),
            0.9 if group is not None else 0.8 if ramp.name else 0.7,
            culprits=() if group is None else _culprits(group, ramp),
            remedies=_remedies(ramp, group),
            detail=(
                "It comes back each time, so it is no leak across evaluations; with more batches "
                "it gets higher."
            ),
            subject=ramp.name or "between steps",
            since_step=ramp.steps[0],
        )
    ]


def _is_graph(group: GrowthGroup) -> bool:
    holder = main_holder(group)
    return holder is not None and holder.kind == GRAPH


def _name(group: GrowthGroup | None) -> str:
    holder = None if group is None else main_holder(group)
    return "" if holder is None else holder_name(holder.chain)


def _sentence(ramp: EvaluationRamp, group: GrowthGroup | None) -> str:
    size, name = size_text(ramp.bytes), _name(group)
    times = count_text(len(ramp.steps), "time")
    if group is not None and _is_graph(group):
        return fitting(f"An evaluation gathers {size}: {name} keeps the graph of every batch.")
    where = "Evaluation" if ramp.name in ("", "eval") else ramp.name.capitalize()
    if name:
        return fitting(
            f"{where} keeps {size} in {name} until it ends; then it goes again.",
            f"{where} keeps {size} until it ends; then it goes again.",
        )
    if not ramp.name:
        return f"{size} build up between two steps, piece by piece, and go again: {times} so far."
    return f"{where} keeps {size} until it ends: memory rises with every batch, then goes."


def _evidence(ramp: EvaluationRamp, group: GrowthGroup | None) -> dict[str, Any]:
    return {
        "title": "Kept until the evaluation ends",
        "held_bytes": int(ramp.bytes),
        "peak_bytes": int(ramp.top_bytes),
        "rises": list(ramp.steps),
        "phase": ramp.name,
        "holder": "" if group is None else _name(group),
        "facts": ["The next step ends where the one before had ended: no leak."],
    }


def _culprits(group: GrowthGroup, ramp: EvaluationRamp) -> tuple[Culprit, ...]:
    holder, lines = main_holder(group), lines_of(group)
    frame = lines[0] if lines else None
    if frame is None and holder is not None and holder.kind == GRAPH:
        frame = holder.frame  # what was running then: the loop that makes the graph longer
    return (
        Culprit(
            "" if frame is None else frame.file,
            0 if frame is None else frame.line,
            "" if frame is None else frame.function,
            group.bytes or int(ramp.bytes),
            None,
            group.tensors,
            () if holder is None else chain_of(holder),
        ),
    )


def _remedies(ramp: EvaluationRamp, group: GrowthGroup | None) -> tuple[Remedy, ...]:
    """Of results that gather, of a graph that does, or of both where it is not known."""
    gained = int(ramp.bytes)
    results = (
        Remedy(
            "Reduce each batch's result, or move it to the CPU",
            "What is kept for the end then takes no GPU memory.",
            gained,
            fix="outputs.append(output.argmax(-1).cpu())",
        ),
        Remedy(
            "Return nothing that nobody reads",
            "Some trainers collect whatever an evaluation step returns until the end.",
            gained,
        ),
    )
    name = _name(group) or "h"
    detach = Remedy(
        "Detach a state that is carried from batch to batch",
        "With its history it keeps the graph of every batch before.",
        gained,
        fix=f"{name} = {name}.detach()",
    )
    if group is None and ramp.name:
        return results  # an evaluation that is known as one has its gradients off, as a rule
    if group is None:
        return (results[0], detach, results[1])
    if not _is_graph(group):
        return results
    no_grad = Remedy(
        "Evaluate without gradients",
        "Nothing is then saved for a backward pass that never comes.",
        gained,
        fix="with torch.no_grad():",
    )
    return (no_grad, detach)


def _severity(rank: RankEvidence, ramp: EvaluationRamp) -> Severity:
    """A warning where the evaluation decides how much memory the job needs, and that is much."""
    limit = allocator_limit(rank)
    peaks = rank.steps.numbers(PEAK)
    peaks = peaks[~np.isnan(peaks)]
    if limit is None or not len(peaks) or ramp.top_bytes < _TIGHT * limit:
        return "info"
    return "warning" if ramp.top_bytes >= _DECIDES * float(np.median(peaks)) else "info"

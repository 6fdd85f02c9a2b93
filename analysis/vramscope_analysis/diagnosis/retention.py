"""The finding ``retention``: memory that is kept without growing, or that goes back by itself."""

from __future__ import annotations

from typing import Any, Final

from vramscope_analysis.diagnosis.autocast_cache import autocast_cache
from vramscope_analysis.diagnosis.finding import Culprit, Finding, Remedy
from vramscope_analysis.diagnosis.growth_evidence import growth_evidence, pace_text, since_text
from vramscope_analysis.diagnosis.growth_group import lines_of, main_holder
from vramscope_analysis.diagnosis.growth_reading import GrowthReading, growth_reading
from vramscope_analysis.diagnosis.held_in_evaluation import in_evaluation
from vramscope_analysis.diagnosis.held_memory import HeldMemory, held_memory
from vramscope_analysis.diagnosis.holder_remedies import remedies_of
from vramscope_analysis.diagnosis.holder_words import holder_name, title_of
from vramscope_analysis.diagnosis.words import count_text, fitting, place_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "retention"


def retention(rank: RankEvidence) -> list[Finding]:
    """Judge what is kept, or builds up for a while.

    Args:
        rank: what is known of it.
    """
    reading = growth_reading(rank)
    return [
        *_shared(reading),
        *(_held(held) for held in held_memory(rank) if not held.is_exception),
        *in_evaluation(rank, reading),
        *autocast_cache(rank),
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

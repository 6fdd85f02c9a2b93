"""The finding ``retained_exception``: an exception that is kept keeps the tensors of its frames."""

from __future__ import annotations

from typing import Final

from vramscope_analysis.diagnosis.finding import Culprit, Finding
from vramscope_analysis.diagnosis.growth_evidence import growth_evidence, pace_text, since_text
from vramscope_analysis.diagnosis.growth_group import main_holder
from vramscope_analysis.diagnosis.growth_reading import growth_reading
from vramscope_analysis.diagnosis.held_memory import HeldMemory, held_memory
from vramscope_analysis.diagnosis.holder_remedies import exception_remedies, remedies_of
from vramscope_analysis.diagnosis.holder_words import holder_name, title_of
from vramscope_analysis.diagnosis.words import count_text, fitting, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "retained_exception"
_WHY: Final = "A traceback keeps every frame that it came through, with its variables."


def retained_exception(rank: RankEvidence) -> list[Finding]:
    """Judge whether exceptions keep memory, once or more and more.

    Args:
        rank: what is known of it.
    """
    return [*_growing(rank), *(_held(held) for held in held_memory(rank) if held.is_exception)]


def _growing(rank: RankEvidence) -> list[Finding]:
    reading = growth_reading(rank)
    growth, verdict = reading.growth, reading.verdict
    if growth is None or verdict is None or verdict.kind != KIND:
        return []
    name = holder_name(verdict.held_by) or "an exception"
    place = f" at {verdict.place}" if verdict.place else ""
    pace = pace_text(growth, reading.staircase)
    return [
        Finding(
            KIND,
            "warning" if reading.forecast is None else "critical",
            fitting(
                f"Exceptions keep {pace}{place} alive, held by {name}.",
                f"Exceptions keep {pace}{place} alive.",
            ),
            growth_evidence(reading, growth)
            | {"title": title_of(verdict), "share": round(verdict.share, 2)},
            0.9,
            culprits=verdict.culprits,
            remedies=remedies_of(verdict, int(growth.grown_bytes)),
            detail=f"{since_text(growth)} {_WHY}",
            subject=verdict.place or name,
            since_step=growth.since_step,
        )
    ]


def _held(held: HeldMemory) -> Finding:
    holder = main_holder(held.group)
    chain = () if holder is None else holder.chain
    name = holder_name(chain) or "an exception"
    frame = None if holder is None else holder.frame
    size, step = size_text(held.group.bytes), count_text(held.since_step)
    culprit = Culprit(
        "" if frame is None else frame.file,
        0 if frame is None else frame.line,
        "" if frame is None else frame.function,
        held.group.bytes,
        None,
        held.group.tensors,
        chain,
    )
    return Finding(
        KIND,
        "warning",
        fitting(
            f"An exception has kept {size} since step {step}, held by {name}.",
            f"An exception has kept {size} since step {step}.",
        ),
        {
            "title": "An exception keeps its frames alive",
            "since_step": held.since_step,
            "held_bytes": held.group.bytes,
        },
        0.85,
        culprits=(culprit,),
        remedies=exception_remedies(held.group.bytes),
        detail=f"It does not grow. {_WHY}",
        subject=name,
        since_step=held.since_step,
    )

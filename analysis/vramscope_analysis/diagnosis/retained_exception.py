"""The finding ``retained_exception``: an exception that is kept keeps the tensors of its frames."""

from __future__ import annotations

from typing import Final

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.growth_evidence import growth_evidence, pace_text, since_text
from vramscope_analysis.diagnosis.growth_reading import growth_reading
from vramscope_analysis.diagnosis.holder_words import holder_name, remedies_of, title_of
from vramscope_analysis.diagnosis.words import fitting
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "retained_exception"


def retained_exception(rank: RankEvidence) -> list[Finding]:
    """Judge whether what grows is held by exceptions.

    Args:
        rank: what is known of it.
    """
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
            detail=f"{since_text(growth)} A traceback keeps every frame it came through.",
            subject=verdict.place or name,
            since_step=growth.since_step,
        )
    ]

"""A finding: what is wrong, how sure that is, by which numbers, and what would help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

Severity = Literal["info", "warning", "critical"]
Stage = Literal["suspected", "confirmed"]

SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "critical")
"""The most urgent last."""


@dataclass(frozen=True)
class Culprit:
    """A line behind a finding, with what it keeps and who holds it."""

    file: str = ""
    line: int = 0
    """0: not known."""
    function: str = ""
    bytes: int | None = None
    bytes_per_step: float | None = None
    tensors: tuple[str, ...] = ()
    """What is kept, as a person would say it: ``float32[512, 1024]``."""
    held_by: tuple[str, ...] = ()
    """From the tensor to a name that a person knows: ``list``, ``Trainer.results['acc']``."""


@dataclass(frozen=True)
class Remedy:
    """Something that would help."""

    action: str
    """What to do, in the imperative and in a few words."""
    why: str
    """What it gains and what it does not, in one sentence."""
    predicted_bytes: int | None = None
    """What it would free, where that can be told."""
    cost: str = ""
    """What it costs: "about 30 % of the step time"; empty: nothing, or not known."""
    fix: str = ""
    """Text to copy: a line of code, an environment variable."""
    command: str = ""
    """The command that does it, by its name; empty if there is none."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, as it is judged now."""

    kind: str
    """Name of what is wrong. ``retention`` is memory that is kept and does not grow any more, or
    that goes back by itself: a peak of an evaluation, a model that was meant to be gone."""
    severity: Severity
    summary: str
    """One sentence for a person, at most 110 characters: cause, amount, place, time."""
    evidence: dict[str, Any] = field(default_factory=dict[str, Any])
    """The numbers behind it, by name. Plain JSON values."""
    confidence: float = 1.0
    culprits: tuple[Culprit, ...] = ()
    """Lines, tensors and holders behind it, the largest first, where they are known."""
    remedies: tuple[Remedy, ...] = ()
    """What would help, the most effective first."""
    detail: str = ""
    """The second sentence: since when, by what evidence, what to do."""
    subject: str = ""
    """Tells findings of one kind apart: a line, a pid. The same subject is the same finding."""
    stage: Stage = "confirmed"
    """``suspected`` while it is being made sure of."""
    ranks: tuple[int, ...] = ()
    """The ranks it is about; empty is the one that it was reported of."""
    since_step: int | None = None
    """The step at which it began."""

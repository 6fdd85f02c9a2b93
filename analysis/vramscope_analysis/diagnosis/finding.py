"""A finding: what is wrong, how sure that is, by which numbers, and what would help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["info", "warning", "critical"]


@dataclass(frozen=True)
class Remedy:
    """Something that would help."""

    action: str
    why: str
    predicted_bytes: int | None = None
    """What it would free, where that can be told."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, as it is judged now."""

    kind: str
    severity: Severity
    summary: str
    """One sentence for a person."""
    evidence: dict[str, Any] = field(default_factory=dict[str, Any])
    """The numbers behind it, by name."""
    confidence: float = 1.0
    culprits: tuple[dict[str, Any], ...] = ()
    """Lines, tensors and holders behind it, where they are known."""
    remedies: tuple[Remedy, ...] = ()

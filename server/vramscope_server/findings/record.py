"""One finding of a run, from when it was opened until it is over."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from vramscope_analysis.diagnosis.finding import Finding


@dataclass
class FindingRecord:
    """A finding as it is stored; ``resolved_ns`` is None while it holds."""

    id: str
    run_id: str
    rank: int | None
    """None: of the run as a whole."""
    kind: str
    severity: str
    opened_ns: int
    resolved_ns: int | None
    summary: str
    data: dict[str, Any]
    """Evidence, confidence, culprits, remedies."""

    def payload(self) -> dict[str, Any]:
        """As the API has it."""
        ranks = self.data.get("ranks") or ([] if self.rank is None else [self.rank])
        return {
            "id": self.id,
            "run": self.run_id,
            "rank": self.rank,
            "ranks": ranks,
            "kind": self.kind,
            "severity": self.severity,
            "confidence": self.data.get("confidence", 1.0),
            "summary": self.summary,
            "evidence": self.data.get("evidence", {}),
            "culprits": self.data.get("culprits", []),
            "remedies": self.data.get("remedies", []),
            "opened_ns": self.opened_ns,
            "resolved_ns": self.resolved_ns,
        }

    def take(self, finding: Finding) -> bool:
        """Go on with the same finding as it is judged now; whether its words have changed."""
        data = _data(finding)
        has_changed = (self.severity, self.summary) != (finding.severity, finding.summary)
        self.severity, self.summary = finding.severity, finding.summary
        self.data = data
        return has_changed


def opened(run_id: str, rank: int | None, finding: Finding, now_ns: int) -> FindingRecord:
    """A finding that has just been made."""
    name = f"{run_id}\n{rank}\n{finding.kind}\n{now_ns}"
    return FindingRecord(
        hashlib.sha256(name.encode()).hexdigest()[:16],
        run_id,
        rank,
        finding.kind,
        finding.severity,
        now_ns,
        None,
        finding.summary,
        _data(finding),
    )


def _data(finding: Finding) -> dict[str, Any]:
    return {
        "evidence": finding.evidence,
        "confidence": finding.confidence,
        "culprits": [asdict(culprit) for culprit in finding.culprits],
        "remedies": [asdict(remedy) for remedy in finding.remedies],
    }

"""One finding of a run, from when it was opened until it is over."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings.plain_data import plain_finding, plain_text

MAX_HISTORY: Final = 32
"""Entries of the history; the first one stays."""
MAX_SUMMARY: Final = 400

CONTINUES_NS: Final = 600 * 10**9
"""What is seen again within this time is the same finding."""


@dataclass
class FindingRecord:
    """A finding as it is stored; ``resolved_ns`` is None while it holds.

    Args:
        rank: None: of several ranks, or of the run as a whole.
        data: evidence, confidence, culprits, remedies, and what else is only shown.
        is_final: it held when its rank ended: it is not over, the rank is.
        muted: who does not want to hear of it, until when and why.
        judge: who made it; empty is none of those that are asked in turn.
    """

    id: str
    run_id: str
    rank: int | None
    kind: str
    severity: str
    opened_ns: int
    resolved_ns: int | None
    summary: str
    data: dict[str, Any]
    subject: str = ""
    stage: str = "confirmed"
    confirmed_ns: int | None = None
    is_final: bool = False
    muted: dict[str, Any] | None = None
    judge: str = field(default="", compare=False)
    seen_ns: int = field(default=0, compare=False)
    missed: int = field(default=0, compare=False)
    """Judgements in a row that did not find it."""

    @property
    def state(self) -> str:
        """``open``, ``final`` (it held to the end) or ``resolved``."""
        if self.resolved_ns is None:
            return "open"
        return "final" if self.is_final else "resolved"

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that it is about; empty is the run as a whole."""
        ranks = tuple(self.data.get("ranks") or ())
        return ranks or (() if self.rank is None else (self.rank,))

    def muted_at(self, now_ns: int) -> dict[str, Any] | None:
        """The mute that holds at a time."""
        if self.muted is None or (self.muted.get("until_ns") or now_ns) < now_ns:
            return None
        return self.muted

    def payload(self, now_ns: int) -> dict[str, Any]:
        """As the API has it."""
        data = self.data
        return {
            "id": self.id,
            "run": self.run_id,
            "rank": self.rank,
            "ranks": list(self.ranks),
            "kind": self.kind,
            "severity": self.severity,
            "stage": self.stage,
            "subject": self.subject,
            "confidence": data.get("confidence", 1.0),
            "summary": self.summary,
            "detail": data.get("detail", ""),
            "evidence": data.get("evidence", {}),
            "culprits": data.get("culprits", []),
            "remedies": data.get("remedies", []),
            "since_step": data.get("since_step"),
            "life": data.get("life", 0),
            "step_offset": data.get("step_offset", 0),
            "state": self.state,
            "opened_ns": self.opened_ns,
            "confirmed_ns": self.confirmed_ns,
            "resolved_ns": self.resolved_ns,
            "updated_ns": data.get("updated_ns", self.opened_ns),
            "muted": self.muted_at(now_ns),
            "history": data.get("history", []),
        }

    def take(self, finding: Finding, now_ns: int) -> bool:
        """Go on with the same finding as it is judged now; whether its words have changed."""
        plain = plain_finding(finding)
        was = (self.severity, self.stage, self.summary, self.subject, self.kind)
        before = self._words
        self.kind, self.severity, self.stage = finding.kind, finding.severity, finding.stage
        self.summary = plain_text(finding.summary, MAX_SUMMARY)
        self.subject = plain_text(finding.subject, MAX_SUMMARY)
        self.data = self.data | plain
        if self.stage == "confirmed" and was[1] != "confirmed":
            self.confirmed_ns = now_ns
            self.note(now_ns, "confirmed")
        elif self.stage != was[1]:
            self.note(now_ns, self.stage)
        elif self.severity != was[0]:
            self.note(now_ns, "severity")
        now = (self.severity, self.stage, self.summary, self.subject, self.kind)
        return was != now or before != self._words

    @property
    def _words(self) -> tuple[object, object]:
        """The second sentence and the remedies: what a proof that comes late changes."""
        return self.data.get("detail"), self.data.get("remedies")

    def touch(self, now_ns: int) -> None:
        """It is told anew: a reader keeps the version with the higher number."""
        newer_ns = max(now_ns, self.data.get("updated_ns", 0) + 1)
        self.data = self.data | {"updated_ns": newer_ns}

    def note(self, now_ns: int, what: str) -> None:
        """Add to its history."""
        entry = {
            "time_ns": now_ns,
            "what": what,
            "severity": self.severity,
            "summary": self.summary,
        }
        # A new list: the old one may be on its way to the store.
        history = [*self.data.get("history", []), entry]
        self.data = self.data | {"history": history[:1] + history[1:][1 - MAX_HISTORY :]}

    def resolve(self, time_ns: int, *, is_final: bool) -> None:
        """It is over, or its rank is."""
        self.resolved_ns, self.is_final = max(time_ns, self.opened_ns), is_final
        self.missed = 0
        self.note(self.resolved_ns, "ended" if is_final else "resolved")

    def reopen(self, now_ns: int) -> None:
        """It holds again."""
        self.resolved_ns, self.is_final = None, False
        self.note(now_ns, "reopened")

    def may_reopen(self, now_ns: int) -> bool:
        """Whether one that is seen now is this one."""
        return self.resolved_ns is not None and now_ns - self.resolved_ns <= CONTINUES_NS


def opened(run_id: str, finding: Finding, rank: int | None, now_ns: int) -> FindingRecord:
    """A finding that has just been made."""
    name = f"{run_id}\n{rank}\n{finding.kind}\n{finding.subject}\n{now_ns}"
    record = FindingRecord(
        hashlib.sha256(name.encode(errors="replace")).hexdigest()[:16],
        run_id,
        rank,
        finding.kind,
        finding.severity,
        now_ns,
        None,
        plain_text(finding.summary, MAX_SUMMARY),
        plain_finding(finding),
        plain_text(finding.subject, MAX_SUMMARY),
        finding.stage,
        now_ns if finding.stage == "confirmed" else None,
        seen_ns=now_ns,
    )
    record.note(now_ns, "opened")
    return record

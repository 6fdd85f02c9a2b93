"""One report as the server stores and shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_protocol.integers import MAX_INT64
from vramscope_protocol.messages import OomBegin
from vramscope_server.findings.plain_data import plain_text

MAX_TEXT: Final = 200
MAX_MESSAGE: Final = 4000

ASKED: Final = "asked"
"""Source of a report of a rank that did not run out itself."""

_TEXTS: Final = ("phase", "part", "thread", "source", "detail")
_NUMBERS: Final = (
    "step",
    "skipped",
    "request_bytes",
    "segment_bytes",
    "allowed_bytes",
    "device_free_bytes",
)


def stored_row(begin: OomBegin, report: Mapping[str, Any], received_ns: int) -> dict[str, Any]:
    """The row of a report that has come; what is not as it should be in it is not known."""
    shown: dict[str, Any] = {name: text(report.get(name), MAX_TEXT) for name in _TEXTS}
    shown |= {name: number(report.get(name)) for name in _NUMBERS}
    shown["skipped"] = shown["skipped"] or 0
    shown |= {"summary": None, "severity": None}
    return {
        "id": begin.id,
        "run": begin.run,
        "rank": begin.rank,
        "time_ns": begin.time_ns,
        "received_ns": received_ns,
        "linked_to": begin.linked_to,
        "is_fatal": False,
        "recovered_step": None,
        "message": text(report.get("message"), MAX_MESSAGE),
        "shown": shown,
    }


def shown_row(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the list, as the API has it."""
    row = {name: value for name, value in stored.items() if name != "shown"}
    row |= stored["shown"]
    row["linked_to"] = stored["linked_to"] or None
    # Reports are taken in whole: one that is still coming is not in any list.
    row |= {"state": "complete", "received_bytes": stored["raw_bytes"]}
    return row


def with_verdict(shown: Mapping[str, Any], finding: Finding | None) -> dict[str, Any]:
    """What lists show, with the words of a verdict."""
    if finding is None:
        return dict(shown)
    return {**shown, "summary": text(finding.summary, 400), "severity": finding.severity}


def text(value: object, limit: int) -> str:
    """A text that every database can hold; empty for anything else."""
    return plain_text(value, limit) if isinstance(value, str) else ""


def number(value: object) -> int | None:
    """A number that every database can hold; ``None`` for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_INT64 else None

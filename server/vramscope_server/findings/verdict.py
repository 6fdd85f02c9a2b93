"""What one line about a run says: its most urgent finding, and how many there are. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import SEVERITIES
from vramscope_server.findings.record import FindingRecord

_URGENCY: Final[dict[str, int]] = {name: at for at, name in enumerate(reversed(SEVERITIES))}


def verdict(records: Iterable[FindingRecord], now_ns: int) -> dict[str, Any]:
    """Of findings that hold (or held to the end) those that are not muted.

    Args:
        records: in any order.
        now_ns: the time, which ends mutes.
    """
    heard = [record for record in records if record.muted_at(now_ns) is None]
    counts = dict.fromkeys(_URGENCY, 0)
    for record in heard:
        counts[record.severity] = counts.get(record.severity, 0) + 1
    first = min(heard, key=_order, default=None)
    return {"finding": None if first is None else _line(first), "findings_open": counts}


def _order(record: FindingRecord) -> tuple[int, bool, int, str]:
    is_suspected = record.stage == "suspected"
    return _URGENCY.get(record.severity, len(_URGENCY)), is_suspected, -record.opened_ns, record.id


def _line(record: FindingRecord) -> dict[str, Any]:
    evidence: Any = record.data.get("evidence") or {}
    return {
        "id": record.id,
        "kind": record.kind,
        "severity": record.severity,
        "stage": record.stage,
        "summary": record.summary,
        "state": record.state,
        "rank": record.rank,
        "forecast": evidence.get("forecast"),
    }

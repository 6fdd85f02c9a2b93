"""What one stored report says: as judges read it, with its verdict, and as a page shows it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.oom import diagnose_oom
from vramscope_analysis.evidence.entry_values import texts_in
from vramscope_analysis.evidence.oom_plain import plain_report
from vramscope_analysis.evidence.oom_reading import oom_report_of
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_server.findings.plain_data import plain_finding
from vramscope_server.ooms.report_json import read_json
from vramscope_server.ooms.report_row import ASKED, shown_row, with_verdict

_logger = logging.getLogger("vramscope.ooms")

_SAME_MOMENT_NS: Final = 120 * 10**9

Row = dict[str, Any]
"""A stored report without its JSON."""


def read_report(row: Row, data: bytes) -> OomReport | None:
    """What is judged; None is nothing: the rank did not run out itself, or it cannot be read.

    Args:
        row: as it is stored.
        data: its JSON.
    """
    try:
        told = read_json(data)
    except ValueError as error:  # one report must not keep a server from starting
        _logger.error("report %s: %s", row["id"], error)
        return None
    return _judgeable(row, told)


def put_verdict(row: Row, data: bytes) -> OomReport | None:
    """Put into the row what its report says; returns the report, for the judges of the run."""
    report = read_report(row, data)
    row["shown"] = with_verdict(row["shown"], _judged(row, report))
    return report


def whole_report(row: Row, data: bytes, others: Iterable[Row]) -> dict[str, Any]:
    """Everything about a report, as the API has it.

    Args:
        row: as it is stored.
        data: its JSON.
        others: other reports of the run; those of the same moment are named.

    Raises:
        ValueError: what is stored is no JSON.
    """
    told = read_json(data)
    finding = _judged(row, _judgeable(row, told))
    report = _shown(told)
    report["recovered_step"] = row["recovered_step"]
    report["message"] = row["message"]
    return {
        **shown_row(row),
        "siblings": [_sibling(other) for other in others if _is_sibling(row, other)],
        "report": report,
        "finding": None if finding is None else {**asdict(finding), **plain_finding(finding)},
    }


def _judgeable(row: Row, told: dict[str, Any]) -> OomReport | None:
    if row["shown"]["source"] == ASKED:
        return None
    try:
        report = oom_report_of(told, id=row["id"])
    except Exception:
        _logger.exception("report %s could not be read", row["id"])
        return None
    return replace(
        report,
        id=row["id"],
        message=row["message"] or report.message,
        recovered_step=row["recovered_step"],
    )


def _judged(row: Row, report: OomReport | None) -> Finding | None:
    try:
        return None if report is None else diagnose_oom(report)
    except Exception:
        _logger.exception("report %s could not be judged", row["id"])
        return None


def _shown(report: dict[str, Any]) -> dict[str, Any]:
    """A report whose entries have the types that a reader expects, whoever wrote it."""
    read = plain_report(oom_report_of(report))
    notes = texts_in(report, "notes")
    return {name: read.get(name, told) for name, told in report.items()} | {"notes": notes}


def _is_sibling(row: Row, other: Row) -> bool:
    """Whether another report tells of the same moment, of another rank."""
    if other["id"] == row["id"]:
        return False
    if other["linked_to"] or row["linked_to"]:
        mine = row["linked_to"] or row["id"]
        return bool(mine in (other["linked_to"], other["id"]))
    is_near = abs(other["time_ns"] - row["time_ns"]) <= _SAME_MOMENT_NS
    return is_near and bool(other["rank"] != row["rank"])


def _sibling(other: Row) -> dict[str, Any]:
    return {name: other[name] for name in ("id", "rank", "time_ns")}

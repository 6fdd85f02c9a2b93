"""A report of running out of memory as plain JSON values."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from vramscope_analysis.evidence.columns import UNKNOWN, Rows
from vramscope_analysis.evidence.entry_values import is_list, is_object
from vramscope_analysis.evidence.oom_report import OomReport


def plain_report(report: OomReport) -> dict[str, Any]:
    """Every field; what is not known in rows is null. ``oom_report_of`` reads it back."""
    return {field.name: _plain(getattr(report, field.name)) for field in fields(report)}


def plain_rows(rows: Rows) -> dict[str, Any]:
    """``{"time_ns": [...], "number": [...] or null, "columns": {name: [...]}}``."""
    number = rows.number
    return {
        "time_ns": rows.time_ns.tolist(),
        "number": None if number is None else number.tolist(),
        "columns": {name: _cells(column.tolist()) for name, column in rows.columns.items()},
    }


def _cells(cells: list[Any]) -> list[Any]:
    return [None if _is_unknown(cell) else cell for cell in cells]


def _is_unknown(cell: float) -> bool:
    return cell == UNKNOWN if isinstance(cell, int) else not math.isfinite(cell)


def _plain(value: Any) -> Any:
    if isinstance(value, Rows):
        return plain_rows(value)
    if is_list(value):
        return [dict(entry) for entry in value]
    return dict(value) if is_object(value) else value

"""The audit log as text that can be taken away: one line a row. Pure."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any, Final

import msgspec

COLUMNS: Final = (
    "when",
    "who",
    "origin",
    "address",
    "run",
    "run_name",
    "what",
    "params",
    "ranks",
    "dry_run",
    "result",
    "command_id",
)

_FORMULA: Final = re.compile(r"[\s\x00]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]")
"""What a spreadsheet would compute: names, parameters and results are words of others."""


def csv_head() -> str:
    """The line with the names of the columns."""
    return _lines([COLUMNS])


def csv_lines(rows: Iterable[dict[str, Any]]) -> str:
    """Rows of the audit log, one line each; line breaks within a cell are quoted."""
    return _lines([_harmless(cell) for cell in _cells(row)] for row in rows)


def json_lines(rows: Iterable[dict[str, Any]]) -> str:
    """The same as one JSON object a line."""
    return "".join(f"{msgspec.json.encode(row).decode()}\n" for row in rows)


def utc(time_ns: int) -> str:
    """A time as ISO 8601 has it, to the millisecond; as it is when there is no such year."""
    try:
        when = datetime.fromtimestamp(time_ns / 1e9, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return str(time_ns)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ns // 10**6 % 1000:03d}Z"


def _cells(row: dict[str, Any]) -> list[str]:
    ranks = row["ranks"]
    return [
        utc(row["time_ns"]),
        row["who"],
        row["origin"],
        row["address"],
        row["run"],
        row["run_name"],
        row["name"],
        msgspec.json.encode(row["params"]).decode(),
        ranks if isinstance(ranks, str) else " ".join(map(str, ranks)),
        "yes" if row["dry_run"] else "no",
        row["result"],
        row["command_id"],
    ]


def _harmless(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _lines(rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return text.getvalue()

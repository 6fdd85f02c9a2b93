"""Values out of decoded JSON that nobody vouches for: of the right type, bounded, or not there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from vramscope_analysis.evidence.columns import NO_ROWS, UNKNOWN, Rows

MAX_ROWS: Final = 20_000
"""Of more rows the last are kept."""
MAX_COLUMNS: Final = 512
MAX_ENTRIES: Final = 2_000
"""Entries of one list; what comes behind is left out."""
MAX_TEXT: Final = 2_000
"""Characters of one text; the rest is cut off."""
MAX_DEPTH: Final = 6
"""Lists and objects within one entry; what lies deeper is None."""

_LARGEST: Final = (1 << 63) - 1


def told_text(value: object, limit: int = MAX_TEXT) -> str:
    """A text without what no terminal can print; empty if it is none."""
    if not isinstance(value, str):
        return ""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in value[:limit])


def told_whole(value: object) -> int | None:
    """An integer that a column can hold; None if it is none, or not known."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and UNKNOWN < value <= _LARGEST else None


def told_amount(value: object) -> int | None:
    """An integer from 0 on: bytes, a count, a time."""
    number = told_whole(value)
    return number if number is not None and number >= 0 else None


def told_amounts(value: object) -> dict[str, int]:
    """Amounts by name, without those that are not known."""
    if not isinstance(value, Mapping):
        return {}
    amounts = {told_text(name, 200): told_amount(value[name]) for name in _first(value)}
    return {name: amount for name, amount in amounts.items() if amount is not None and name}


def told_entries(value: object) -> tuple[dict[str, Any], ...]:
    """A list of objects with plain values."""
    if not isinstance(value, list | tuple):
        return ()
    kept = value[:MAX_ENTRIES]
    return tuple(_plain(entry, MAX_DEPTH) for entry in kept if isinstance(entry, Mapping))


def told_rows(value: object) -> Rows:
    """Rows out of ``{"time_ns": [...], "number": [...], "columns": {name: [...]}}``.

    A column of another length than the times is left out; so is ``number``.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("time_ns"), list):
        return NO_ROWS
    count = len(value["time_ns"])
    times = _column(value["time_ns"][-MAX_ROWS:])
    numbers = value.get("number")
    told = value.get("columns")
    columns = {}
    if isinstance(told, Mapping):
        for name in list(told)[:MAX_COLUMNS]:
            cells = told[name]
            if isinstance(name, str) and isinstance(cells, list) and len(cells) == count:
                columns[name[:200]] = _column(cells[-MAX_ROWS:])
    has_numbers = isinstance(numbers, list) and len(numbers) == count
    return Rows(
        times if times.dtype == np.int64 else times.astype(np.int64),
        columns,
        _whole_column(numbers[-MAX_ROWS:]) if isinstance(numbers, list) and has_numbers else None,
    )


def _first(value: Mapping[Any, Any]) -> list[Any]:
    return [name for name in list(value)[:MAX_ENTRIES] if isinstance(name, str)]


def _column(cells: list[Any]) -> Any:
    """int64 where every cell is an integer or not known, else float64."""
    if any(isinstance(cell, float) and math.isfinite(cell) for cell in cells):
        known = [cell if _is_number(cell) else math.nan for cell in cells]
        return np.array([float(cell) for cell in known], np.float64)
    return _whole_column(cells)


def _whole_column(cells: list[Any]) -> Any:
    known = (told_whole(cell) for cell in cells)
    return np.array([UNKNOWN if cell is None else cell for cell in known], np.int64)


def _is_number(cell: object) -> bool:
    if isinstance(cell, float):
        return math.isfinite(cell)
    return told_whole(cell) is not None


def _plain(value: object, depth: int) -> Any:
    if isinstance(value, Mapping):
        if depth <= 0:
            return None
        return {told_text(name, 200): _plain(value[name], depth - 1) for name in _first(value)}
    if isinstance(value, list | tuple):
        return None if depth <= 0 else [_plain(cell, depth - 1) for cell in value[:MAX_ENTRIES]]
    if isinstance(value, str):
        return told_text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return told_whole(value)

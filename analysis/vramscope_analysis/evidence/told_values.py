"""Values out of decoded JSON that nobody vouches for: of the right type, bounded, or not there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.evidence.columns import NO_ROWS, UNKNOWN, Rows
from vramscope_analysis.evidence.entry_values import is_list, is_object

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
    text = value[:limit]
    if text.isprintable():  # nearly always, and much faster
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


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
    if not is_object(value):
        return {}
    amounts = {told_text(name, 200): told_amount(value[name]) for name in _first(value)}
    return {name: amount for name, amount in amounts.items() if amount is not None and name}


def told_entries(value: object) -> tuple[dict[str, Any], ...]:
    """A list of objects with plain values."""
    if not is_list(value):
        return ()
    kept = value[:MAX_ENTRIES]
    return tuple(_plain(entry, MAX_DEPTH) for entry in kept if is_object(entry))


def told_rows(value: object) -> Rows:
    """Rows out of ``{"time_ns": [...], "number": [...], "columns": {name: [...]}}``.

    A column of another length than the times is left out; so is ``number``.
    """
    times = value.get("time_ns") if is_object(value) else None
    if not is_object(value) or not is_list(times):
        return NO_ROWS
    numbers, told = value.get("number"), value.get("columns")
    columns: dict[str, NDArray[Any]] = {}
    if is_object(told):
        for name in list(told)[:MAX_COLUMNS]:
            cells = told[name]
            if isinstance(name, str) and is_list(cells) and len(cells) == len(times):
                columns[name[:200]] = _column(cells[-MAX_ROWS:])
    has_numbers = is_list(numbers) and len(numbers) == len(times)
    return Rows(
        _whole_column(times[-MAX_ROWS:]),
        columns,
        _whole_column(numbers[-MAX_ROWS:]) if is_list(numbers) and has_numbers else None,
    )


def _first(value: Mapping[Any, Any]) -> list[Any]:
    return [name for name in list(value)[:MAX_ENTRIES] if isinstance(name, str)]


def _column(cells: Sequence[Any]) -> NDArray[Any]:
    """int64 where every cell is an integer or not known, else float64."""
    if any(isinstance(cell, float) and math.isfinite(cell) for cell in cells):
        known = [cell if _is_number(cell) else math.nan for cell in cells]
        return np.array([float(cell) for cell in known], np.float64)
    return _whole_column(cells)


def _whole_column(cells: Sequence[Any]) -> NDArray[np.int64]:
    known = (told_whole(cell) for cell in cells)
    return np.array([UNKNOWN if cell is None else cell for cell in known], np.int64)


def _is_number(cell: object) -> bool:
    if isinstance(cell, float):
        return math.isfinite(cell)
    return told_whole(cell) is not None


def _plain(value: object, depth: int) -> Any:
    if is_object(value):
        if depth <= 0:
            return None
        return {told_text(name, 200): _plain(value[name], depth - 1) for name in _first(value)}
    if is_list(value):
        return None if depth <= 0 else [_plain(cell, depth - 1) for cell in value[:MAX_ENTRIES]]
    if isinstance(value, str):
        return told_text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return told_whole(value)

"""Entries of the lists in a report: what the judges read of them has the type that they expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from vramscope_analysis.evidence.entry_values import is_list, is_object
from vramscope_analysis.evidence.told_values import (
    told_amount,
    told_entries,
    told_text,
    told_whole,
)

Entry = dict[str, Any]


def oom_entries(value: object) -> tuple[Entry, ...]:
    """Objects of a list: known keys with values of their type or None, others as they are."""
    return tuple(_entry(entry) for entry in told_entries(value))


def _entry(entry: Mapping[str, Any]) -> Entry:
    return {key: _TYPES[key](told) if key in _TYPES else told for key, told in entry.items()}


def _line(value: object) -> int:
    return told_amount(value) or 0


def _texts(value: object) -> list[str]:
    return [told_text(each) for each in value] if is_list(value) else []


def _frames(value: object) -> list[Entry]:
    """Frames that have a file."""
    return [frame for frame in oom_entries(value) if frame.get("file")]


def _one(value: object) -> Entry | None:
    return _entry(value) if is_object(value) else None


def _list(value: object) -> list[Entry]:
    return list(oom_entries(value))


_TYPES: Final[dict[str, Callable[[object], Any]]] = {
    "bytes": told_amount,
    "count": told_amount,
    "largest_bytes": told_amount,
    "returnable_bytes": told_amount,
    "largest_segment_bytes": told_amount,
    "requested_bytes": told_amount,
    "line": _line,
    "pid": told_whole,
    "stream": told_whole,
    "file": told_text,
    "function": told_text,
    "pool": told_text,
    "command": told_text,
    "tensor": told_text,
    "category": told_text,
    "name": told_text,
    "kind": told_text,
    "own": lambda value: value is True,
    "raised": lambda value: value is True,
    "held_by": _texts,
    "chain": _texts,
    "frames": _frames,
    "frame": _one,
    "holder": _one,
    "pinned_by": _list,
}

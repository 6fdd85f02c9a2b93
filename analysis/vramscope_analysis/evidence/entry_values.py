"""What is read of an entry of a report: a value of the type that is meant, or one that is empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

Entry = Mapping[str, Any]


def is_object(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether this is a JSON object."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether this is a JSON array."""
    return isinstance(value, list | tuple)


def amount_in(entry: Entry, name: str) -> int:
    """A number above 0; else 0."""
    value = entry.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def text_in(entry: Entry, name: str) -> str:
    """A text; else an empty one."""
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def texts_in(entry: Entry, name: str) -> list[str]:
    """The texts of a list."""
    value = entry.get(name)
    return [str(text) for text in value] if is_list(value) else []


def entry_in(entry: Entry, name: str) -> Entry:
    """An entry within; else an empty one."""
    value = entry.get(name)
    return value if is_object(value) else {}


def entries_in(entry: Entry, name: str) -> list[Entry]:
    """The entries of a list within."""
    value = entry.get(name)
    return [each for each in value if is_object(each)] if is_list(value) else []

"""Tests for the exact types that plain data is made of; a subclass is something else."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_dict(value: object) -> TypeGuard[dict[Any, Any]]:
    """Whether the value is a dict itself."""
    return type(value) is dict


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a list itself."""
    return type(value) is list


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether the value is a tuple itself."""
    return type(value) is tuple


def is_pair(value: object) -> TypeGuard[tuple[int, int]]:
    """Whether the value is a tuple of two integers from 0 to 2**63 - 1."""
    return (
        is_tuple(value)
        and len(value) == 2
        and all(type(part) is int and 0 <= part < 1 << 63 for part in value)
    )

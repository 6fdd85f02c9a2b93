"""How many samples a batch has, whatever it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

_MAX_DEPTH: Final = 4
_MAX_PARTS: Final = 256
"""Looked at in all: a batch of nested lists may have any number."""


def sample_count(batch: object) -> int | None:
    """Length of the first dimension of the first tensor, or ``None`` if there is none.

    Args:
        batch: a tensor, or tensors in tuples, lists, mappings or objects with attributes.
    """
    return _count(batch, _MAX_DEPTH, iter(range(_MAX_PARTS)))


def _count(value: object, depth: int, looks: Iterator[int]) -> int | None:
    shape: Any = getattr(value, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    if depth == 0 or isinstance(value, (str, bytes)):
        return None
    for part in _parts(value):
        if next(looks, None) is None:
            break
        count = _count(part, depth - 1, looks)
        if count is not None:
            return count
    return None


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[object, object]", value).values())
    if isinstance(value, (list, tuple)):
        return cast("Iterable[object]", value)
    return list(getattr(value, "__dict__", {}).values())

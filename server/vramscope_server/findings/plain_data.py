"""Makes of what a judge says what JSON and every database can hold, whatever was measured."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Final, cast

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.evidence.entry_values import is_object

MAX_CULPRITS: Final = 16
MAX_REMEDIES: Final = 16
MAX_ITEMS: Final = 4096
"""Entries of all lists and objects of one finding's evidence together."""
MAX_TEXT: Final = 2000
MAX_RANKS: Final = 4096

_MAX_DEPTH: Final = 6
_MOST: Final = (1 << 63) - 1


def plain_finding(finding: Finding) -> dict[str, Any]:
    """What is stored of a finding beside its columns."""
    return {
        "evidence": plain_value(finding.evidence),
        "confidence": plain_value(finding.confidence) or 0.0,
        "culprits": plain_value([asdict(each) for each in finding.culprits[:MAX_CULPRITS]]),
        "remedies": plain_value([asdict(each) for each in finding.remedies[:MAX_REMEDIES]]),
        "detail": plain_text(finding.detail),
        "since_step": plain_value(finding.since_step),
        "ranks": list(finding.ranks[:MAX_RANKS]),
    }


def plain_text(text: str, most: int = MAX_TEXT) -> str:
    """Text without what PostgreSQL and UTF-8 do not have."""
    return text[:most].replace("\0", "").encode(errors="replace").decode()


def plain_value(value: Any) -> Any:
    """Numbers, words, lists and objects; what is no number, or none of these, is None."""
    return _plain(value, _MAX_DEPTH, [MAX_ITEMS])


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return plain_text(value)
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()  # a number of numpy's
    if isinstance(value, int):
        return value if abs(value) <= _MOST else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth == 0 or left[0] <= 0:
        return None
    most = max(0, left[0])
    if is_object(value):
        return {
            plain_text(str(name)): _plain(each, depth - 1, left)
            for name, each in list(value.items())[:most]
        }
    if isinstance(value, (list, tuple)):
        return [_plain(each, depth - 1, left) for each in cast("list[Any]", value)[:most]]
    return None

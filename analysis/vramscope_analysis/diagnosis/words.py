"""Numbers as words of a sentence, written as the page writes them."""

from __future__ import annotations

import math
import re
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

UNKNOWN_TEXT: Final = "–"
MAX_SENTENCE: Final = 110
"""Characters that a verdict has at most."""

_MINUS: Final = "\u2212"
_ONE_DECIMAL_MIB: Final = 100 * MIB
_MIB_RATE: Final = MIB / 10
"""A rate from here on is told in MiB, so that 0.4 MiB per step is not 410 KiB."""

_UNITS_OF_TIME: Final = (("second", 1.0, 99.0), ("minute", 60.0, 99 * 60.0), ("hour", 3600.0, 0.0))


def _fixed(value: float, decimals: int) -> str:
    text = f"{abs(value):,.{decimals}f}"
    is_zero = not re.search("[1-9]", text)
    return f"{_MINUS}{text}" if value < 0 and not is_zero else text


def size_text(size_bytes: float | None) -> str:
    """A size with the unit that suits it: ``26.2 GiB``, ``198 MiB``, ``64 KiB``."""
    if size_bytes is None or math.isnan(size_bytes):
        return UNKNOWN_TEXT
    magnitude = abs(size_bytes)
    if magnitude >= GIB:
        return f"{_fixed(size_bytes / GIB, 1)} GiB"
    if magnitude >= MIB:
        return f"{_fixed(size_bytes / MIB, 0 if magnitude >= _ONE_DECIMAL_MIB else 1)} MiB"
    if magnitude >= KIB:
        return f"{_fixed(size_bytes / KIB, 0)} KiB"
    return f"{_fixed(size_bytes, 0)} bytes"


def rate_text(bytes_per_step: float, unit: str = "step") -> str:
    """A rate: ``3.1 MiB per step``."""
    if _MIB_RATE <= abs(bytes_per_step) < MIB:
        return f"{_fixed(bytes_per_step / MIB, 1)} MiB per {unit}"
    return f"{size_text(bytes_per_step)} per {unit}"


def count_text(number: float, noun: str = "", plural: str = "") -> str:
    """A number with thousands commas, and what it counts: ``1,240 steps``.

    Args:
        number: how many.
        noun: what, in the singular; empty leaves it out.
        plural: of the noun, where an ``s`` behind it is not enough.
    """
    text = _fixed(number, 0)
    if not noun:
        return text
    return f"{text} {noun if round(number) == 1 else plural or noun + 's'}"


def share_text(share: float) -> str:
    """A share as percent: an integer, below ten with one decimal."""
    percent = share * 100
    return f"{_fixed(percent, 1 if abs(percent) < 10 else 0)}\u2009%"


def duration_text(duration_s: float) -> str:
    """A time: ``26 minutes``."""
    name, seconds = _unit_of_time(duration_s)
    return count_text(max(duration_s / seconds, 0), name)


def duration_range(early_s: float, late_s: float) -> str:
    """A time that is known within bounds: ``26 to 34 minutes``, in one unit."""
    name, seconds = _unit_of_time(late_s)
    early, late = math.floor(early_s / seconds), math.ceil(late_s / seconds)
    if early >= late:
        return count_text(late, name)
    if early == 0:
        return f"less than {count_text(late, name)}"
    return f"{count_text(early)} to {count_text(late, name)}"


def _unit_of_time(duration_s: float) -> tuple[str, float]:
    for name, seconds, up_to_s in _UNITS_OF_TIME:
        if duration_s <= up_to_s:
            return name, seconds
    return _UNITS_OF_TIME[-1][0], _UNITS_OF_TIME[-1][1]


def place_text(file: str, line: int) -> str:
    """A line as a person would say it: ``train.py:56``, without the folders."""
    name = re.split(r"[/\\]", file)[-1] or file
    return f"{name}:{line}" if line else name


def fitting(*sentences: str) -> str:
    """The first of several wordings that is short enough for a verdict; else the last, cut."""
    for sentence in sentences:
        if len(sentence) <= MAX_SENTENCE:
            return sentence
    return sentences[-1][: MAX_SENTENCE - 1].rstrip() + "…"

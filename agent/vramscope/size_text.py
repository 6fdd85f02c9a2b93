"""Bytes as a person reads them."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size_bytes: int | None, unknown: str = "an unknown amount") -> str:
    """Bytes in the unit that leaves three digits or so: "0 B", "512 KiB", "1.50 GiB"."""
    if size_bytes is None:
        return unknown
    value, unit = float(size_bytes), _UNITS[0]
    for unit in _UNITS:
        if abs(value) < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{value:.0f} {unit}" if value == int(value) else f"{value:.2f} {unit}"

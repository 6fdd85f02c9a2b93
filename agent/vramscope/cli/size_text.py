"""Bytes as a person reads them."""

from __future__ import annotations


def size_text(size_bytes: int | None) -> str:
    """``1.50 GiB``, ``512 KiB``, ``12 B``; a dash for what is not known."""
    if size_bytes is None:
        return "-"
    for unit, unit_bytes in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(size_bytes) >= unit_bytes:
            return f"{size_bytes / unit_bytes:.2f} {unit}"
    return f"{size_bytes} B"

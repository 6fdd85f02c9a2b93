"""What a file that is no readable snapshot raises."""

from __future__ import annotations


class SnapshotError(ValueError):
    """A file or a value that is no memory snapshot, or one that is damaged, hostile or too large.

    The message says what was expected, what was found and what to do; it names the file only by
    the name that the caller gave.
    """


def shown(value: object) -> str:
    """How a value looks in a message: its type, and itself where that is short and plain."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        digits = value.bit_length()
        return str(value) if digits <= 128 else f"an integer of {digits} bits"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:40]}…")
    if isinstance(value, float):
        return repr(value)
    return f"a {type(value).__name__}"

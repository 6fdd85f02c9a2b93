"""Rows of words in columns, for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from vramscope.cli.printable import printable


def text_table(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> str:
    """Rows as lines, each column as wide as its widest cell and two spaces apart.

    A cell may hold a job's own words: what could steer the terminal is not printed.

    Args:
        rows: cells; the first row is the head, and all rows have as many cells.
        right: columns of numbers, which end in line instead of beginning in line.
    """
    rows = [[printable(cell, keep="") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )

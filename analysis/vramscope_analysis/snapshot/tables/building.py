"""What the tables of one snapshot share while they are built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_list
from vramscope_analysis.snapshot.limits import Limits, over
from vramscope_analysis.snapshot.plain_values import PlainValues
from vramscope_analysis.snapshot.runs.run import count_rows
from vramscope_analysis.snapshot.tables.column_array import ColumnArray
from vramscope_analysis.snapshot.tables.columns import Column, count_of, rows_of
from vramscope_analysis.snapshot.tables.extra_column import ExtraColumn, WordColumn
from vramscope_analysis.snapshot.tables.layout import Layout
from vramscope_analysis.snapshot.tables.stack_table import StackTable
from vramscope_analysis.snapshot.tables.table_rows import TableRows

# Two keys for one column: in a row that has both, the first is kept aside.
_SAME_COLUMN = {"device_free": "addr"}


class Building:
    """Stacks, kept-aside values and limits of one snapshot."""

    def __init__(
        self, limits: Limits, most_rows: int | None = None, *, keeps_runs: bool = True
    ) -> None:
        """``most_rows`` bounds the rows of all tables together; None: no bound.

        Without ``keeps_runs`` the memory of runs is given back as soon as they became columns:
        each is then part of one table only.
        """
        self.limits = limits
        self.stacks = StackTable()
        self.values = PlainValues(limits)
        self._rows_left = most_rows
        self._keeps_runs = keeps_runs

    def rows(self, plain: Any, where: str) -> TableRows:
        """The rows of a list of dicts; SnapshotError for anything else."""
        if not is_list(plain):
            raise SnapshotError(f"{where}: expected a list, got {shown(plain)}")
        rows = TableRows(where)
        self.extend(rows, plain)
        return rows

    def extend(self, rows: TableRows, plain: list[Any]) -> None:
        """Append dicts to rows; SnapshotError when they are more than a file may hold."""
        if self._rows_left is not None:
            self._rows_left -= count_rows(plain)
            if self._rows_left < 0:
                raise SnapshotError(
                    f"{rows.where(len(rows))}: one entry is listed so often that the tables would "
                    "outgrow the file many times: no file of PyTorch's does that"
                )
        rows.extend(plain)

    def fill(
        self, rows: TableRows, columns: Mapping[str, Column], required: tuple[str, ...]
    ) -> Layout:
        """Fill columns, given by key, from the rows; what has no column is kept in the layout.

        ``required`` are the keys without which a row is refused; "a|b" asks for one of two.
        """
        shapes = rows.shapes()
        if len(shapes) > self.limits.shapes:
            raise over(f"{rows.name}: rows differ in their keys", self.limits.shapes, "shapes")
        shape = ColumnArray(len(rows), np.uint16, 0)
        extras: dict[str, ExtraColumn] = {}
        for index, (keys, pieces) in enumerate(shapes.items()):
            positions = [piece.positions for piece in pieces]
            _check_keys(keys, required, rows.where(rows_of(positions[0])[0]))
            for where in positions:
                shape.put(where, np.broadcast_to(np.uint16(index), count_of(where)))
            for key in keys:
                column = columns.get(key)
                if column is None or _SAME_COLUMN.get(key) in keys:
                    column = extras.setdefault(key, ExtraColumn(key, self.values))
                for piece, where in zip(pieces, positions, strict=True):
                    column.put(where, piece.values(key), rows.where)
                for piece in pieces if not self._keeps_runs else ():
                    piece.release(key)
        for key, column in columns.items():
            if isinstance(column, WordColumn) and column.aside:
                extras[key] = column.aside
        built = {key: column.extra() for key, column in extras.items()}
        return Layout(tuple(shapes), shape.built(), built)


def _check_keys(keys: tuple[Any, ...], required: tuple[str, ...], where: str) -> None:
    for key in keys:
        if type(key) is not str:
            raise SnapshotError(f"{where}: expected text as key, got {shown(key)}")
    for key in required:
        if not set(key.split("|")) & set(keys):
            got = ", ".join(map(shown, keys[:8])) or "no keys"
            raise SnapshotError(f"{where}: expected the key {key!r}, got {got}")

"""Writes the rows of a table as the dicts of a list."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vramscope_analysis.snapshot.pickles.opcodes import Op
from vramscope_analysis.snapshot.pickles.pickle_writer import BATCH, PickleWriter
from vramscope_analysis.snapshot.tables.encoded_columns import EncodedColumn, EncodedExtra, Rows
from vramscope_analysis.snapshot.tables.layout import Layout

_BEGIN = bytes([Op.EMPTY_DICT, Op.MARK])
_END = bytes([Op.SETITEMS])


class TableWriter:
    """Writes rows of one table; most of a batch at once, whatever is new in it row by row."""

    def __init__(
        self, out: PickleWriter, layout: Layout, columns: Mapping[str, EncodedColumn]
    ) -> None:
        self._out = out
        self._layout = layout
        self._columns = dict(columns)
        for key, extra in layout.extras.items():
            self._columns[key] = EncodedExtra(extra, columns.get(key))

    def write(self, start: int, end: int) -> None:
        """A list of the rows from ``start`` up to ``end``."""
        out = self._out
        out.write(bytes([Op.EMPTY_LIST]))
        for first in range(start, end, BATCH):
            out.write(bytes([Op.MARK]))
            rows = np.arange(first, min(first + BATCH, end), dtype=np.intp)
            behind = 0
            for place in self._unwritten(rows):
                self._write_rows(rows[behind:place])
                self._write_row(int(rows[place]))
                behind = place + 1
            self._write_rows(rows[behind:])
            out.write(bytes([Op.APPENDS]))

    def _unwritten(self, rows: Rows) -> list[int]:
        """The places of rows in which something stands for the first time, ascending."""
        found: set[int] = set()
        shapes = self._layout.shape[rows]
        present: list[int] = np.unique(shapes).tolist()
        for index in present:
            places = np.flatnonzero(shapes == index)
            for key in self._layout.shapes[index]:
                if self._out.fetched_text(key) is None:
                    found.add(int(places[0]))
                found.update(places[self._columns[key].unwritten(rows[places])].tolist())
        return sorted(found)

    def _write_row(self, row: int) -> None:
        self._out.write(_BEGIN)
        for key in self._layout.keys_of(row):
            self._out.text(key)
            self._columns[key].write(self._out, row)
        self._out.write(_END)

    def _write_rows(self, rows: Rows) -> None:
        made: list[bytes] = [b""] * len(rows)
        shapes = self._layout.shape[rows]
        present: list[int] = np.unique(shapes).tolist()
        for index in present:
            places = np.flatnonzero(shapes == index)
            parts: list[list[bytes]] = [[_BEGIN] * len(places)]
            for key in self._layout.shapes[index]:
                parts.append([self._out.fetched_text(key) or b""] * len(places))
                parts.append(self._columns[key].opcodes(rows[places]))
            parts.append([_END] * len(places))
            for place, row in zip(places.tolist(), zip(*parts, strict=True), strict=True):
                made[place] = b"".join(row)
        self._out.write(b"".join(made))

"""Columns on their way into a pickle: the opcodes of each value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.pickles.pickle_writer import PickleWriter, integer_opcodes
from vramscope_analysis.snapshot.tables.layout import Extra

Rows = NDArray[np.intp]


class EncodedColumn(ABC):
    """The values of one key as opcodes."""

    @abstractmethod
    def unwritten(self, rows: Rows) -> Rows:
        """The places among the rows where something stands that must be written out first."""

    @abstractmethod
    def write(self, out: PickleWriter, row: int) -> None:
        """Write the value of one row; what is new in it can be fetched from then on."""

    @abstractmethod
    def opcodes(self, rows: Rows) -> list[bytes]:
        """The opcodes of values in which nothing is new."""


class EncodedNumbers(EncodedColumn):
    """Values that are always written out: integers, pairs, True and False."""

    def __init__(self, column: NDArray[Any], encode: Callable[[Any], bytes]) -> None:
        self._column = column
        self._encode = encode

    def unwritten(self, rows: Rows) -> Rows:
        return rows[:0]

    def write(self, out: PickleWriter, row: int) -> None:
        out.write(self._encode(self._column[row].tolist()))

    def opcodes(self, rows: Rows) -> list[bytes]:
        return [self._encode(value) for value in self._column[rows].tolist()]


class EncodedObjects(EncodedColumn):
    """Numbers of objects, each of which is written out once.

    ``write`` writes the object of a number and returns the opcodes that give it once more;
    ``written`` holds those by number, and may be shared by columns with the same objects.
    """

    def __init__(
        self,
        column: NDArray[Any],
        write: Callable[[PickleWriter, int], bytes],
        written: dict[int, bytes],
    ) -> None:
        self._column = column
        self._write = write
        self._written = written

    def unwritten(self, rows: Rows) -> Rows:
        numbers, places = np.unique(self._column[rows], return_index=True)
        new = [number not in self._written for number in numbers.tolist()]
        return places[new]

    def write(self, out: PickleWriter, row: int) -> None:
        number = int(self._column[row])
        if number in self._written:
            out.write(self._written[number])
        else:
            self._written[number] = self._write(out, number)

    def opcodes(self, rows: Rows) -> list[bytes]:
        return [self._written[number] for number in self._column[rows].tolist()]


class EncodedExtra(EncodedColumn):
    """Values that were kept aside: where a row has none, those of the column, if there is one."""

    def __init__(self, extra: Extra, column: EncodedColumn | None) -> None:
        self._extra = extra
        self._column = column
        self._objects = EncodedObjects(extra.values, self._write_object, {})

    def unwritten(self, rows: Rows) -> Rows:
        has = self._extra.has(rows)
        kept = np.flatnonzero(has)
        places = self._extra.places(rows[kept])
        objects = np.flatnonzero(self._extra.is_object[places])
        found = [kept[objects[self._objects.unwritten(places[objects])]]]
        if self._column is not None:
            others = np.flatnonzero(~has)
            found.append(others[self._column.unwritten(rows[others])])
        return np.concatenate(found)

    def write(self, out: PickleWriter, row: int) -> None:
        rows = np.array([row], np.intp)
        if self._column is not None and not self._extra.has(rows)[0]:
            self._column.write(out, row)
            return
        place = int(self._extra.places(rows)[0])
        if self._extra.is_object[place]:
            self._objects.write(out, place)
        else:
            out.write(integer_opcodes(int(self._extra.values[place])))

    def opcodes(self, rows: Rows) -> list[bytes]:
        made: list[bytes] = [b""] * len(rows)
        has = self._extra.has(rows)
        kept = np.flatnonzero(has)
        places = self._extra.places(rows[kept])
        values = self._extra.values[places].tolist()
        are_objects = self._extra.is_object[places].tolist()
        for at, place, value, is_object in zip(
            kept.tolist(), places, values, are_objects, strict=True
        ):
            if is_object:
                made[at] = self._objects.opcodes(np.array([place], np.intp))[0]
            else:
                made[at] = integer_opcodes(value)
        others = np.flatnonzero(~has)
        if self._column is not None and len(others):
            for at, opcodes in zip(
                others.tolist(), self._column.opcodes(rows[others]), strict=True
            ):
                made[at] = opcodes
        return made

    def _write_object(self, out: PickleWriter, number: int) -> bytes:
        return out.value_again(self._extra.objects[number])

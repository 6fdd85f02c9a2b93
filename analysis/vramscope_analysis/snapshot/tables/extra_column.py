"""The column of a key that is not known, and of words that are not."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.plain_values import PlainValues
from vramscope_analysis.snapshot.runs.run import Coded
from vramscope_analysis.snapshot.tables.column_array import ColumnArray
from vramscope_analysis.snapshot.tables.columns import CodedColumn, Where, is_text, rows_of
from vramscope_analysis.snapshot.tables.layout import Extra, Positions


class ExtraColumn(CodedColumn):
    """Values of any kind: integers of 64 bits as they are, everything else as an object."""

    def __init__(self, key: str, values: PlainValues) -> None:
        super().__init__(key, ColumnArray(0, np.int64, 0))
        self._plain = values
        self._rows: list[NDArray[np.int64]] = []
        self._values: list[NDArray[np.int64]] = []
        self._is_object: list[NDArray[np.bool_]] = []
        self._texts: dict[str, int] = {}
        self.objects: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._rows)

    def put_plain(self, positions: Positions, values: list[Any], where: Where) -> None:
        numbers = np.zeros(len(values), np.int64)
        is_object = np.zeros(len(values), np.bool_)
        for place, value in enumerate(values):
            if type(value) is int and -(1 << 63) <= value < 1 << 63:
                numbers[place] = value
            else:
                is_object[place] = True
                numbers[place] = self.number(value)
        self._add(positions, numbers, is_object)

    def put_coded(self, positions: Positions, values: Coded) -> bool:
        if values.objects is None:
            numbers: NDArray[Any] = values.values
        else:
            coded = self.coded_numbers(values)
            if coded is None:
                return False
            numbers = coded
        is_object = np.full(len(values), values.objects is not None)
        self._add(positions, numbers.astype(np.int64), is_object)
        return True

    def number(self, value: Any) -> int:
        """The place of the value among the objects."""
        if is_text(value) and value in self._texts:
            return self._texts[value]
        self._plain.check(value, self.key)
        self.objects.append(value)
        if is_text(value):
            self._texts[value] = len(self.objects) - 1
        return len(self.objects) - 1

    def _add(
        self, positions: Positions, numbers: NDArray[np.int64], is_object: NDArray[np.bool_]
    ) -> None:
        self._rows.append(rows_of(positions).astype(np.int64))
        self._values.append(numbers)
        self._is_object.append(is_object)

    def extra(self) -> Extra:
        """All that was put, by row."""
        rows = np.concatenate(self._rows)
        order = np.argsort(rows, kind="stable")
        return Extra(
            rows[order],
            np.concatenate(self._values)[order],
            np.concatenate(self._is_object)[order],
            self.objects,
        )


class WordColumn(CodedColumn):
    """Words of an enumeration; other words are OTHER, and kept aside as they are."""

    def __init__(self, key: str, rows: int, words: type[IntEnum], values: PlainValues) -> None:
        self._other = int(words["OTHER"])
        super().__init__(key, ColumnArray(rows, np.uint8, self._other))
        self._known = {word.name.lower(): int(word) for word in words if word.name != "OTHER"}
        self.aside = ExtraColumn(key, values)

    def put_plain(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {str}:
            raise self.wrong("a word", positions, values, is_text, where)
        numbers = [self._known.get(value, self._other) for value in values]
        self.array.put(positions, numbers)
        if self._other in numbers:
            others = [place for place, number in enumerate(numbers) if number == self._other]
            rows = rows_of(positions)[others]
            self.aside.put_plain(rows, [values[place] for place in others], where)

    def number(self, value: Any) -> int | None:
        """The number of a known word; others belong to their rows."""
        return self._known.get(value) if is_text(value) else None

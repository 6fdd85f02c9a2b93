"""Columns while a table is built: values are checked, then put where their rows are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_list, is_pair
from vramscope_analysis.snapshot.layout import Extra, Positions
from vramscope_analysis.snapshot.plain_values import PlainValues
from vramscope_analysis.snapshot.stack_table import StackTable

# Says where a row is: "device_traces[0][17]".
Where = Callable[[int], str]


class Column(ABC):
    """The values of one key in a table of so many rows."""

    def __init__(self, key: str) -> None:
        self.key = key

    @abstractmethod
    def put(self, positions: Positions, values: list[Any], where: Where) -> None:
        """Check plain values and put them at these rows; SnapshotError names a wrong one."""

    def wrong(
        self,
        expected: str,
        positions: Positions,
        values: list[Any],
        is_right: Callable[[Any], bool],
        where: Where,
    ) -> SnapshotError:
        """The refusal of the first of the values that is not right."""
        place = next(place for place, value in enumerate(values) if not is_right(value))
        row = place + positions.start if isinstance(positions, slice) else int(positions[place])
        return SnapshotError(
            f"{where(row)}.{self.key}: expected {expected}, got {shown(values[place])}"
        )


class IntegerColumn(Column):
    """Whole numbers within bounds."""

    def __init__(
        self,
        key: str,
        rows: int,
        dtype: type[np.integer[Any]],
        *,
        least: int | None = None,
        into: IntegerColumn | None = None,
    ) -> None:
        """``into``: the column of another key that takes the values of this one too."""
        super().__init__(key)
        bounds = np.iinfo(dtype)
        self.least = int(bounds.min) if least is None else least
        self.most = int(bounds.max)
        self.array: NDArray[Any] = np.zeros(rows, dtype) if into is None else into.array

    def put(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {int} or min(values) < self.least or max(values) > self.most:
            least = "any" if self.least < 0 else f"at least {self.least}"
            raise self.wrong(
                f"an integer ({least}, at most {self.most})", positions, values, self._fits, where
            )
        self.array[positions] = values

    def _fits(self, value: Any) -> bool:
        return type(value) is int and self.least <= value <= self.most


class FlagColumn(Column):
    """True and False."""

    def __init__(self, key: str, rows: int) -> None:
        super().__init__(key)
        self.array = np.zeros(rows, np.bool_)

    def put(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {bool}:
            raise self.wrong(
                "True or False", positions, values, lambda value: type(value) is bool, where
            )
        self.array[positions] = values


class PairColumn(Column):
    """Tuples of two whole numbers, as pool ids are; (-1, -1) where a row has none."""

    def __init__(self, key: str, rows: int) -> None:
        super().__init__(key)
        self._rows = rows
        # Most tables have none in any row: a view of one pair costs nothing.
        self.array: NDArray[np.int64] = np.broadcast_to(np.int64(-1), (rows, 2))

    def put(self, positions: Positions, values: list[Any], where: Where) -> None:
        if not all(map(is_pair, values)):
            raise self.wrong(
                "a tuple of two integers of at least 0", positions, values, is_pair, where
            )
        self.pairs()[positions] = values

    def pairs(self) -> NDArray[np.int64]:
        """The array, writable."""
        if not self.array.flags.writeable:
            self.array = np.full((self._rows, 2), -1, np.int64)
        return self.array


class WordColumn(Column):
    """Words of an enumeration; other words are OTHER and kept aside as they are."""

    def __init__(self, key: str, rows: int, words: type[IntEnum], values: PlainValues) -> None:
        super().__init__(key)
        self._numbers = {word.name.lower(): int(word) for word in words if word.name != "OTHER"}
        self._other = int(words["OTHER"])
        self.aside = ExtraColumn(key, values)
        self.array = np.full(rows, self._other, np.uint8)

    def put(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {str}:
            raise self.wrong("a word", positions, values, _is_text, where)
        numbers = [self._numbers.get(value, self._other) for value in values]
        self.array[positions] = numbers
        if self._other in numbers:
            others = [place for place, number in enumerate(numbers) if number == self._other]
            rows = rows_of(positions)[others]
            self.aside.put(rows, [values[place] for place in others], where)


class TextColumn(Column):
    """Texts, each kept once; -1 where a row has none."""

    def __init__(self, key: str, rows: int, texts: dict[str, int]) -> None:
        super().__init__(key)
        self._texts = texts
        self.array = np.full(rows, -1, np.int32)

    def put(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {str}:
            raise self.wrong("a text", positions, values, _is_text, where)
        texts = self._texts
        self.array[positions] = [texts.setdefault(value, len(texts)) for value in values]


class StackColumn(Column):
    """Lists of frames; -1 for an empty list and where a row has none."""

    def __init__(self, key: str, rows: int, stacks: StackTable) -> None:
        super().__init__(key)
        self._stacks = stacks
        self.array = np.full(rows, -1, np.int32)

    def put(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {list}:
            raise self.wrong("a list of frames", positions, values, is_list, where)
        self.array[positions] = self._stacks.indices(values, f"{self.key} of a row")


class ListColumn(Column):
    """Lists, as they are."""

    def __init__(self, key: str, rows: int) -> None:
        super().__init__(key)
        self.lists: list[list[Any]] = [[]] * rows

    def put(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {list}:
            raise self.wrong("a list", positions, values, is_list, where)
        for row, value in zip(rows_of(positions).tolist(), values, strict=True):
            self.lists[row] = value


class ExtraColumn(Column):
    """Values of a key that has no column, as they are."""

    def __init__(self, key: str, values: PlainValues) -> None:
        super().__init__(key)
        self._plain = values
        self._rows: list[NDArray[np.int64]] = []
        self._values: list[NDArray[np.int64]] = []
        self._is_object: list[NDArray[np.bool_]] = []
        self.objects: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._rows)

    def put(self, positions: Positions, values: list[Any], where: Where) -> None:
        numbers = np.zeros(len(values), np.int64)
        is_object = np.zeros(len(values), np.bool_)
        known: dict[str, int] = {}
        for place, value in enumerate(values):
            if type(value) is int and -(1 << 63) <= value < 1 << 63:
                numbers[place] = value
                continue
            is_object[place] = True
            if type(value) is str:
                if value not in known:
                    known[value] = len(self.objects)
                    self.objects.append(value)
                numbers[place] = known[value]
            else:
                self._plain.check(value, self.key)
                numbers[place] = len(self.objects)
                self.objects.append(value)
        self._rows.append(rows_of(positions).astype(np.int64))
        self._values.append(numbers)
        self._is_object.append(is_object)

    def built(self) -> Extra:
        """All that was put, by row."""
        rows = np.concatenate(self._rows)
        order = np.argsort(rows, kind="stable")
        return Extra(
            rows[order],
            np.concatenate(self._values)[order],
            np.concatenate(self._is_object)[order],
            self.objects,
        )


def rows_of(positions: Positions) -> NDArray[np.intp]:
    """The row numbers that positions stand for."""
    if isinstance(positions, slice):
        return np.arange(positions.start, positions.stop, dtype=np.intp)
    return positions


def _is_text(value: Any) -> bool:
    return type(value) is str

"""Columns while a table is built: values are checked, then put where their rows are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_list, is_pair
from vramscope_analysis.snapshot.runs.run import Coded
from vramscope_analysis.snapshot.tables.column_array import ColumnArray
from vramscope_analysis.snapshot.tables.layout import Positions

# Says where a row is: "device_traces[0][17]".
Where = Callable[[int], str]


class Column(ABC):
    """The values of one key in a table of so many rows."""

    def __init__(self, key: str) -> None:
        self.key = key

    def put(self, positions: Positions, values: list[Any] | Coded, where: Where) -> None:
        """Check values and put them at these rows; SnapshotError names a wrong one."""
        if isinstance(values, list):
            self.put_plain(positions, values, where)
        elif not self.put_coded(positions, values):
            self.put_plain(positions, values.plain(), where)

    @abstractmethod
    def put_plain(self, positions: Positions, values: list[Any], where: Where) -> None:
        """The same for values as they are."""

    @abstractmethod
    def put_coded(self, positions: Positions, values: Coded) -> bool:
        """The same for values of a run; False when some must be looked at one by one."""

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
        self.array: ColumnArray = ColumnArray(rows, dtype, 0) if into is None else into.array

    def put_plain(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {int} or min(values) < self.least or max(values) > self.most:
            least = "any" if self.least < 0 else f"at least {self.least}"
            raise self.wrong(
                f"an integer ({least}, at most {self.most})", positions, values, self._fits, where
            )
        self.array.put(positions, values)

    def put_coded(self, positions: Positions, values: Coded) -> bool:
        numbers = values.values
        if values.objects is not None or int(numbers.min()) < self.least:
            return False
        if int(numbers.max()) > self.most:
            return False
        self.array.put(positions, numbers)
        return True

    def built(self) -> NDArray[Any]:
        """All numbers, 0 where none was put."""
        return self.array.built()

    def _fits(self, value: Any) -> bool:
        return type(value) is int and self.least <= value <= self.most


class CodedColumn(Column):
    """Values that become small numbers, each different object of a run only once."""

    def __init__(self, key: str, array: ColumnArray) -> None:
        super().__init__(key)
        self.array = array
        self._objects: object = None
        self._numbers = np.zeros(0, np.int32)

    def built(self) -> NDArray[Any]:
        """The numbers of all values."""
        return self.array.built()

    @abstractmethod
    def number(self, value: Any) -> int | None:
        """The number of a value; None where it must be looked at in its row."""

    def put_coded(self, positions: Positions, values: Coded) -> bool:
        numbers = self.coded_numbers(values)
        if numbers is None:
            return False
        self.array.put(positions, numbers)
        return True

    def coded_numbers(self, values: Coded) -> NDArray[np.int32] | None:
        """The number of each value of a run; None where one has none."""
        if values.objects is None:
            return None
        if self._objects is not values.objects:
            self._objects = values.objects
            self._numbers = self._numbers[:0]
        missing = len(values.objects) - len(self._numbers)
        if missing > 0:
            self._numbers = np.concatenate([self._numbers, np.full(missing, _NOT_YET, np.int32)])
        numbers = self._numbers[values.values]
        if int(numbers.min()) == _NOT_YET:
            for code in np.unique(values.values[numbers == _NOT_YET]).tolist():
                number = self.number(values.objects[code])
                if number is None:
                    return None
                self._numbers[code] = number
            numbers = self._numbers[values.values]
        return numbers


# No column has this number.
_NOT_YET = -(1 << 31)


class FlagColumn(CodedColumn):
    """True and False."""

    def __init__(self, key: str, rows: int) -> None:
        super().__init__(key, ColumnArray(rows, np.bool_, 0))

    def put_plain(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {bool}:
            raise self.wrong(
                "True or False", positions, values, lambda value: type(value) is bool, where
            )
        self.array.put(positions, values)

    def number(self, value: Any) -> int | None:
        return int(value) if type(value) is bool else None


class TextColumn(CodedColumn):
    """Texts, each kept once; -1 where a row has none."""

    def __init__(self, key: str, rows: int, texts: dict[str, int]) -> None:
        super().__init__(key, ColumnArray(rows, np.int32, -1))
        self._texts = texts

    def put_plain(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {str}:
            raise self.wrong("a text", positions, values, is_text, where)
        texts = self._texts
        self.array.put(positions, [texts.setdefault(value, len(texts)) for value in values])

    def number(self, value: Any) -> int | None:
        return self._texts.setdefault(value, len(self._texts)) if is_text(value) else None


class PairColumn(CodedColumn):
    """Tuples of two whole numbers, as pool ids are; (-1, -1) where a row has none."""

    def __init__(self, key: str, rows: int) -> None:
        super().__init__(key, ColumnArray(rows, np.int32, 0))
        # By number: the pairs, of which there are few.
        self._pairs: dict[tuple[int, int], int] = {(-1, -1): 0}

    def put_plain(self, positions: Positions, values: list[Any], where: Where) -> None:
        if not all(map(is_pair, values)):
            raise self.wrong(
                "a tuple of two integers of at least 0", positions, values, is_pair, where
            )
        pairs = self._pairs
        self.array.put(positions, [pairs.setdefault(value, len(pairs)) for value in values])

    def number(self, value: Any) -> int | None:
        return self._pairs.setdefault(value, len(self._pairs)) if is_pair(value) else None

    def pairs(self) -> NDArray[np.int64]:
        """All pairs (n, 2)."""
        numbers = self.built()
        pairs: NDArray[np.int64] = np.array(list(self._pairs), np.int64)
        if len(numbers) and numbers.strides == (0,):
            return np.broadcast_to(pairs[int(numbers[0])], (len(numbers), 2))
        spread: NDArray[np.int64] = pairs[numbers]
        return spread


class ListColumn(Column):
    """Lists, as they are."""

    def __init__(self, key: str, rows: int) -> None:
        super().__init__(key)
        self.lists: list[list[Any]] = [[]] * rows

    def put_plain(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {list}:
            raise self.wrong("a list", positions, values, is_list, where)
        for row, value in zip(rows_of(positions).tolist(), values, strict=True):
            self.lists[row] = value

    def put_coded(self, positions: Positions, values: Coded) -> bool:
        return False


def rows_of(positions: Positions) -> NDArray[np.intp]:
    """The row numbers that positions stand for."""
    if isinstance(positions, slice):
        return np.arange(positions.start, positions.stop, dtype=np.intp)
    return positions


def count_of(positions: Positions) -> int:
    """How many rows positions stand for."""
    if isinstance(positions, slice):
        return int(positions.stop - positions.start)
    return len(positions)


def is_text(value: object) -> bool:
    """Whether the value is a text itself."""
    return type(value) is str

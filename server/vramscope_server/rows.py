"""Rows of numbers in memory: the columns of a batch, of several batches, or of an open chunk."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from vramscope_protocol.columns import ITEM_BYTES, UNKNOWN
from vramscope_protocol.messages import BatchKind, Field
from vramscope_protocol.series import STEP, TIME_NS

Column = NDArray[Any]

_WIDE_BYTES: Final = 8
_FEW: Final = 16
DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "q": np.dtype("<i8"),
    "d": np.dtype("<f8"),
    "f": np.dtype("<f4"),
}


class ColumnGroup(NamedTuple):
    """Columns of one type as one matrix, so that numpy is called once a type, not once a column.

    ``positions`` are the columns' places in the field table; ``values`` has one row a column.
    """

    code: str
    positions: Sequence[int]
    values: Column


class _Run(NamedTuple):
    """Neighbouring columns of one item size, copied out of a batch in one go."""

    wide: bool
    row: int
    columns: int


class ColumnLayout:
    """Where the columns of a field table lie in :class:`Rows`.

    Columns of 8 bytes share one matrix and columns of 4 bytes another, as bits, so that a batch is
    taken in by two copies instead of one a column.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = list(fields)
        self.fields_json = msgspec.json.encode(self.fields)
        self.fingerprint = hashlib.sha256(self.fields_json).hexdigest()
        """Equal for equal field tables, on whichever connection they came."""
        self.codes = [field.code for field in fields]
        self.index = {field.name: position for position, field in enumerate(fields)}
        self.places: list[tuple[bool, int]] = []
        self.runs: list[_Run] = []
        counts = {True: 0, False: 0}
        for code in self.codes:
            wide = ITEM_BYTES[code] == _WIDE_BYTES
            if self.runs and self.runs[-1].wide == wide:
                last = self.runs.pop()
                self.runs.append(_Run(wide, last.row, last.columns + 1))
            else:
                self.runs.append(_Run(wide, counts[wide], 1))
            self.places.append((wide, counts[wide]))
            counts[wide] += 1
        self.positions = {
            code: [at for at, other in enumerate(self.codes) if other == code]
            for code in dict.fromkeys(self.codes)
        }
        """Columns of each type, by place in the field table."""
        self.wide_columns = counts[True]
        self.narrow_columns = counts[False]

    def row_bytes(self) -> int:
        """Bytes of one row."""
        return 8 * self.wide_columns + 4 * self.narrow_columns


class Rows:
    """``count`` consecutive rows of one kind, as bits; columns are views made when asked for.

    Args:
        kind: sample or step.
        first_index: the agent's count of the first row.
        layout: names and types of the columns.
        wide: bits of the 8-byte columns, one row a column.
        narrow: bits of the 4-byte columns.
    """

    __slots__ = ("first_index", "kind", "layout", "narrow", "wide")

    def __init__(
        self,
        kind: BatchKind,
        first_index: int,
        layout: ColumnLayout,
        wide: NDArray[np.uint64],
        narrow: NDArray[np.uint32],
    ) -> None:
        self.kind: BatchKind = kind
        self.first_index = first_index
        self.layout = layout
        self.wide = wide
        self.narrow = narrow

    @classmethod
    def from_batch(
        cls, kind: BatchKind, first_index: int, layout: ColumnLayout, count: int, body: bytes
    ) -> Rows:
        """Copy the columns out of a batch body that ``ServerSession`` has checked."""
        wide = np.empty((layout.wide_columns, count), np.uint64)
        narrow = np.empty((layout.narrow_columns, count), np.uint32)
        data: NDArray[np.uint8] = np.frombuffer(body, np.uint8)
        offset = 0
        for run in layout.runs:
            matrix = wide if run.wide else narrow
            # Each column is its type byte, then its values, which therefore are not aligned.
            stride = 1 + count * matrix.itemsize
            columns = data[offset : offset + run.columns * stride].reshape(run.columns, stride)
            target = matrix[run.row : run.row + run.columns].view(np.uint8)
            target[:] = columns[:, 1:]
            offset += run.columns * stride
        return cls(kind, first_index, layout, wide, narrow)

    @classmethod
    def from_bytes(
        cls, kind: BatchKind, first_index: int, layout: ColumnLayout, count: int, data: bytes
    ) -> Rows:
        """Undo :meth:`to_bytes`."""
        split = layout.wide_columns * count * 8
        wide: NDArray[np.uint64] = np.frombuffer(data[:split], np.uint64)
        narrow: NDArray[np.uint32] = np.frombuffer(data[split:], np.uint32)
        return cls(
            kind,
            first_index,
            layout,
            wide.reshape(layout.wide_columns, count),
            narrow.reshape(layout.narrow_columns, count),
        )

    @classmethod
    def join(cls, parts: Sequence[Rows]) -> Rows:
        """Rows of one layout and kind behind one another."""
        first = parts[0]
        if len(parts) == 1:
            return first
        return cls(
            first.kind,
            first.first_index,
            first.layout,
            np.concatenate([part.wide for part in parts], axis=1),
            np.concatenate([part.narrow for part in parts], axis=1),
        )

    def to_bytes(self) -> bytes:
        """All bits, column by column, the wide ones first."""
        return self.wide.tobytes() + self.narrow.tobytes()

    def __len__(self) -> int:
        # Every field table holds time_ns and step, so there always is a wide column.
        return int(self.wide.shape[1])

    def part(self, start: int, stop: int) -> Rows:
        """Rows ``start`` up to ``stop``, without a copy."""
        return Rows(
            self.kind,
            self.first_index + start,
            self.layout,
            self.wide[:, start:stop],
            self.narrow[:, start:stop],
        )

    @property
    def names(self) -> list[str]:
        """Names of the columns, in the order of the field table."""
        return list(self.layout.index)

    def column(self, name: str) -> Column | None:
        """Values of one column, ``None`` if there is none of that name."""
        position = self.layout.index.get(name)
        return None if position is None else self.column_at(position)

    def column_at(self, position: int) -> Column:
        """Values of the column at ``position`` of the field table."""
        wide, row = self.layout.places[position]
        bits: Column = self.wide[row] if wide else self.narrow[row]
        return bits.view(DTYPES[self.layout.codes[position]])

    def groups(self) -> list[ColumnGroup]:
        """All columns, those of one type together."""
        groups: list[ColumnGroup] = []
        for code, positions in self.layout.positions.items():
            bits: Column = self.wide if ITEM_BYTES[code] == _WIDE_BYTES else self.narrow
            values = bits[[self.layout.places[position][1] for position in positions]]
            groups.append(ColumnGroup(code, positions, values.view(DTYPES[code])))
        return groups

    @property
    def time_ns(self) -> NDArray[np.int64]:
        """Times of the rows."""
        return self.column_at(self.layout.index[TIME_NS])

    @property
    def step(self) -> NDArray[np.int64]:
        """Optimizer steps finished at each row."""
        return self.column_at(self.layout.index[STEP])


def json_values(column: Column) -> list[int | float | None]:
    """Values as JSON has them: ``None`` for what is not known and for what JSON cannot say."""
    values: list[int | float | None] = column.tolist()
    if len(values) <= _FEW and _all_known(values, column.dtype.kind):
        return values  # a live batch: numpy's checks would cost ten times its few values
    known = column != UNKNOWN if column.dtype.kind == "i" else np.isfinite(column)
    if not known.all():
        for position in np.flatnonzero(~known).tolist():
            values[position] = None
    return values


def _all_known(values: list[Any], kind: str) -> bool:
    return UNKNOWN not in values if kind == "i" else all(map(math.isfinite, values))

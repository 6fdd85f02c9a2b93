"""Dicts that were decoded together and stay columns until someone asks for one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class Coded:
    """The values of one key: integers, or numbers of ``objects`` where there are those."""

    values: NDArray[np.int64] | NDArray[np.int32]
    objects: Sequence[Any] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> Coded:
        return Coded(self.values[rows], self.objects)

    def plain(self) -> list[Any]:
        """The values themselves."""
        values: list[Any] = self.values.tolist()
        return values if self.objects is None else [self.objects[value] for value in values]


@dataclass(eq=False)
class RunPart:
    """Dicts with the same keys, n of them.

    ``rows`` (ascending, n) are their places in the block, None if they are all of it.
    """

    keys: tuple[str, ...]
    count: int
    rows: NDArray[np.int32] | None
    columns: dict[str, Coded]
    _released: dict[str, int] = field(default_factory=dict[str, int])

    def release(self, key: str, span: slice) -> None:
        """Forget the values of a key once those of all dicts were released."""
        self._released[key] = self._released.get(key, 0) + span.stop - span.start
        if self._released[key] >= self.count:
            self.columns.pop(key, None)

    def span(self, start: int, end: int) -> slice:
        """Which of the part's dicts are among these rows of the run."""
        if self.rows is None:
            return slice(start, end)
        return slice(int(self.rows.searchsorted(start)), int(self.rows.searchsorted(end)))

    def places(self, span: slice) -> NDArray[np.intp]:
        """The places of some of the dicts in the block."""
        if self.rows is None:
            return np.arange(span.start, span.stop, dtype=np.intp)
        return self.rows[span].astype(np.intp)


@dataclass
class RunBlock:
    """Dicts that were decoded at once, in the order of the pickle, by sets of keys."""

    parts: list[RunPart] = field(default_factory=list[RunPart])


@dataclass(frozen=True)
class Run:
    """Stands in a list for ``count`` dicts: those from row ``start`` of a block on."""

    block: RunBlock
    start: int
    count: int

    def dicts(self) -> list[dict[str, Any]]:
        """The dicts themselves."""
        made: list[dict[str, Any]] = [{}] * self.count
        for part in self.block.parts:
            span = part.span(self.start, self.start + self.count)
            columns = [part.columns[key][span].plain() for key in part.keys]
            rows = part.places(span).tolist()
            for row, *values in zip(rows, *columns, strict=True):
                made[row - self.start] = dict(zip(part.keys, values, strict=True))
        return made


def count_rows(items: list[Any]) -> int:
    """How many items a list has when its runs are counted in dicts."""
    return sum(item.count if type(item) is Run else 1 for item in items)


def values_of_runs(items: list[Any]) -> int:
    """How many values the runs in a list become when they are expanded."""
    values = 0
    for item in items:
        if type(item) is Run:
            values += item.count * (1 + max(len(part.keys) for part in item.block.parts))
    return values


def expand(items: list[Any]) -> None:
    """Replace the runs in a list by their dicts."""
    if any(type(item) is Run for item in items):
        items[:] = [
            part for item in items for part in (item.dicts() if type(item) is Run else [item])
        ]

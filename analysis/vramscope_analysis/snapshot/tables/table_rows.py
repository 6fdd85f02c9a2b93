"""The rows of a table before they become columns: dicts, and runs that stand for many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_dict
from vramscope_analysis.snapshot.runs.run import Coded, Run, RunPart
from vramscope_analysis.snapshot.tables.layout import Positions


@dataclass
class DictRows:
    """Dicts with the same keys, and which rows of the table they are."""

    dicts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    places: list[int] = field(default_factory=list[int])

    @property
    def positions(self) -> Positions:
        """The rows of the table."""
        return np.array(self.places, np.intp)

    def values(self, key: str) -> list[Any]:
        """The values of a key."""
        return [row[key] for row in self.dicts]

    def release(self, key: str) -> None:
        """The values of this key will not be asked for again."""


@dataclass
class RunRows:
    """Some dicts of a run, all with the same keys, and which rows of the table they are."""

    part: RunPart
    span: slice
    positions: Positions

    def extend(self, part: RunPart, span: slice, positions: Positions) -> bool:
        """Add rows that follow these both in the run and in the table; False if they do not."""
        if not (isinstance(self.positions, slice) and isinstance(positions, slice)):
            return False
        if (part, span.start, positions.start) != (self.part, self.span.stop, self.positions.stop):
            return False
        self.span = slice(self.span.start, span.stop)
        self.positions = slice(self.positions.start, positions.stop)
        return True

    def values(self, key: str) -> Coded:
        """The values of a key."""
        return self.part.columns[key][self.span]

    def release(self, key: str) -> None:
        """The values of this key will not be asked for again."""
        self.part.release(key, self.span)


class TableRows:
    """The rows in the order of the list they come from, sorted into sets of equal keys."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._count = 0
        self._dicts: dict[tuple[str, ...], DictRows] = {}
        self._runs: dict[tuple[str, ...], list[RunRows]] = {}

    def __len__(self) -> int:
        return self._count

    def where(self, row: int) -> str:
        """How messages name a row."""
        return f"{self.name}[{row}]"

    def extend(self, items: list[Any]) -> None:
        """Append rows; SnapshotError unless each is a dict or a run of them."""
        for item in items:
            if type(item) is Run:
                self._add_run(item)
                continue
            if not is_dict(item):
                raise SnapshotError(f"{self.where(len(self))}: expected a dict, got {shown(item)}")
            keys = tuple(item)
            rows = self._dicts.get(keys)
            if rows is None:
                rows = self._dicts[keys] = DictRows()
            rows.dicts.append(item)
            rows.places.append(self._count)
            self._count += 1

    def _add_run(self, run: Run) -> None:
        for part in run.block.parts:
            span = part.span(run.start, run.start + run.count)
            if span.start == span.stop:
                continue
            offset = self._count - run.start
            positions: Positions = slice(span.start + offset, span.stop + offset)
            if part.rows is not None:
                positions = part.places(span) + offset
                if positions[-1] - positions[0] < len(positions):
                    positions = slice(int(positions[0]), int(positions[-1]) + 1)
            runs = self._runs.setdefault(part.keys, [])
            if not (runs and runs[-1].extend(part, span, positions)):
                runs.append(RunRows(part, span, positions))
        self._count += run.count

    def shapes(self) -> dict[tuple[str, ...], list[DictRows | RunRows]]:
        """The different tuples of keys, each with the rows that have it."""
        shapes: dict[tuple[str, ...], list[DictRows | RunRows]] = {}
        for keys, rows in self._dicts.items():
            shapes[keys] = [rows]
        for keys, runs in self._runs.items():
            shapes.setdefault(keys, []).extend(runs)
        return shapes

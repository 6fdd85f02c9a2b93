"""The rows of a table before they become columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_dict


class TableRows:
    """Dicts in the order of the list they come from, sorted into sets of equal keys."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows: list[dict[str, Any]] = []
        self._places: dict[tuple[str, ...], list[int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def where(self, row: int) -> str:
        """How messages name a row."""
        return f"{self.name}[{row}]"

    def extend(self, plain: list[Any]) -> None:
        """Append rows; SnapshotError unless each is a dict."""
        places = self._places
        for row in plain:
            if not is_dict(row):
                raise SnapshotError(f"{self.where(len(self))}: expected a dict, got {shown(row)}")
            places.setdefault(tuple(row), []).append(len(self._rows))
            self._rows.append(row)

    def shapes(self) -> dict[tuple[str, ...], NDArray[np.intp]]:
        """The different tuples of keys, each with the rows that have it."""
        return {keys: np.array(places, np.intp) for keys, places in self._places.items()}

    def values(self, key: str, places: NDArray[np.intp]) -> list[Any]:
        """The values of a key in rows that all have it."""
        return [self._rows[place][key] for place in places.tolist()]

"""The column of the frames of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from vramscope_analysis.snapshot.kinds import is_list
from vramscope_analysis.snapshot.tables.column_array import ColumnArray
from vramscope_analysis.snapshot.tables.columns import CodedColumn, Where
from vramscope_analysis.snapshot.tables.layout import Positions
from vramscope_analysis.snapshot.tables.stack_table import StackTable
from vramscope_analysis.snapshot.tables.stacks import NO_STACK


class StackColumn(CodedColumn):
    """Lists of frames; -1 for an empty list and where a row has none."""

    def __init__(self, key: str, rows: int, stacks: StackTable) -> None:
        super().__init__(key, ColumnArray(rows, np.int32, NO_STACK))
        self._stacks = stacks

    def put_plain(self, positions: Positions, values: list[Any], where: Where) -> None:
        if set(map(type, values)) - {list}:
            raise self.wrong("a list of frames", positions, values, is_list, where)
        self.array.put(positions, [self._stacks.index(value, self.key) for value in values])

    def number(self, value: Any) -> int | None:
        return self._stacks.index(value, self.key) if is_list(value) else None

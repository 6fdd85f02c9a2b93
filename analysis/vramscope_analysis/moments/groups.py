"""Blocks gathered by what one wants to see: stack, line, category or size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.recorded_memory import RecordedMemory

By = Literal["stack", "line", "category", "size"]

SIZES: Final = (
    (1 << 20, "up to 1 MiB"),
    (10 << 20, "1 to 10 MiB"),
    (100 << 20, "10 to 100 MiB"),
    (1 << 30, "100 MiB to 1 GiB"),
    (1 << 63, "above 1 GiB"),
)
"""Size classes by their upper end. 1 MiB is the largest request of the allocator's small pool, from
10 MiB on a request gets a segment of its own."""


@dataclass(frozen=True)
class Group:
    """Blocks that are shown as one.

    Args:
        label: its words.
        category: what its memory is for; None where it is of several kinds.
        file: path of its line; empty where there is none.
    """

    label: str
    category: Category | None
    file: str = ""


def groups_of(memory: RecordedMemory, by: By) -> tuple[NDArray[np.int64], list[Group]]:
    """The group of every block, as an index, and the groups."""
    if by == "category":
        return memory.category_of.astype(np.int64), [Group(c.word, c) for c in Category]
    if by == "size":
        ends = np.array([end for end, _ in SIZES[:-1]])
        index = np.searchsorted(ends, memory.lifetimes.size, side="left")
        return index, [Group(text, None) for _, text in SIZES]
    if by == "stack":
        groups = [Group(s.label, s.category, s.file) for s in memory.sources]
        return memory.source_of.astype(np.int64), groups
    return _by_line(memory)


def _by_line(memory: RecordedMemory) -> tuple[NDArray[np.int64], list[Group]]:
    places: dict[tuple[str, str], int] = {}
    groups: list[Group] = []
    of_source = np.zeros(len(memory.sources), np.int64)
    for index, source in enumerate(memory.sources):
        key = (source.file, source.line)
        if key not in places:
            places[key] = len(groups)
            groups.append(Group(source.line, source.category, source.file))
        place = of_source[index] = places[key]
        if groups[place].category != source.category:
            groups[place] = Group(source.line, None, source.file)
    return of_source[memory.source_of], groups

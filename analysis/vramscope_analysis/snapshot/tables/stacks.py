"""Python and C++ frames, each kept once, and the stacks made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.tables.layout import Layout

NO_STACK = -1


class Frame(NamedTuple):
    """One frame of a stack, as in PyTorch's snapshots."""

    filename: str
    line: int
    name: str


@dataclass(frozen=True, eq=False)
class Frames:
    """Every different frame of a snapshot, one row each.

    ``filename`` and ``name`` are indices into ``texts``. Keys that PyTorch adds with
    ``augment_with_fx_traces`` are in ``layout``.
    """

    filename: NDArray[np.int32]
    name: NDArray[np.int32]
    line: NDArray[np.int64]
    texts: list[str]
    layout: Layout

    def __len__(self) -> int:
        return len(self.line)

    def __getitem__(self, index: int) -> Frame:
        """The frame of this index; IndexError beyond the last."""
        texts = self.texts
        return Frame(texts[self.filename[index]], int(self.line[index]), texts[self.name[index]])

    @property
    def keys(self) -> set[str]:
        """Every key that some frame has."""
        return self.layout.keys


@dataclass(frozen=True, eq=False)
class Stacks:
    """Every different stack of a snapshot: stack i is ``frames[offsets[i]:offsets[i + 1]]``.

    The innermost frame comes first, as in PyTorch's lists. No stack is empty: entries without
    frames have the index -1 instead.
    """

    offsets: NDArray[np.int64]
    frames: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> tuple[int, ...]:
        """The indices of the stack's frames; IndexError beyond the last stack."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        start, end = self.offsets[index : index + 2].tolist()
        return tuple(self.frames[start:end].tolist())

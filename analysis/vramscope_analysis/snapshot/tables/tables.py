"""The tables of a snapshot: segments, blocks and trace entries as columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.tables.layout import Layout


@dataclass(frozen=True, eq=False)
class Segments:
    """The segments of all devices, n rows in the order of the snapshot.

    Sizes are bytes. ``pool_id`` is (n, 2), (-1, -1) where a segment names none; ``stack`` is -1
    where it has no frames. The blocks of segment i are the rows ``block_offsets[i]`` to
    ``block_offsets[i + 1]`` of the blocks. Numbers that a segment does not have are 0.
    """

    device: NDArray[np.int32]
    address: NDArray[np.uint64]
    total_size: NDArray[np.int64]
    allocated_size: NDArray[np.int64]
    active_size: NDArray[np.int64]
    requested_size: NDArray[np.int64]
    stream: NDArray[np.int64]
    is_small: NDArray[np.bool_]
    pool_id: NDArray[np.int64]
    is_expandable: NDArray[np.bool_]
    stack: NDArray[np.int32]
    block_offsets: NDArray[np.int64]
    layout: Layout

    def __len__(self) -> int:
        return len(self.address)

    def block_range(self, row: int) -> tuple[int, int]:
        """The first block of a segment and the one behind its last."""
        return int(self.block_offsets[row]), int(self.block_offsets[row + 1])

    @property
    def keys(self) -> set[str]:
        """Every key that some segment has."""
        return self.layout.keys


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of all segments, n rows; sizes in bytes.

    ``state`` holds numbers of BlockState, ``segment`` the row of the segment, ``stack`` is -1
    where a block has no frames. A block without an address (PyTorch before 2.1) has the one that
    follows from the blocks before it.
    """

    address: NDArray[np.uint64]
    size: NDArray[np.int64]
    requested_size: NDArray[np.int64]
    state: NDArray[np.uint8]
    stack: NDArray[np.int32]
    segment: NDArray[np.int32]
    layout: Layout

    def __len__(self) -> int:
        return len(self.address)

    @property
    def keys(self) -> set[str]:
        """Every key that some block has."""
        return self.layout.keys


@dataclass(frozen=True, eq=False)
class Trace:
    """The trace entries of one device, n rows, oldest first (``TraceEntry``).

    ``action`` holds numbers of Action. ``address`` is the free memory of the device in an "oom"
    entry (``device_free``). ``size`` is in bytes: what was requested for alloc and free, the real
    size for segments, the rounded request of an "oom". ``pool_id`` is (n, 2), (-1, -1) where an
    entry names none; ``stack`` is -1 where it has no frames. ``compile_context`` and
    ``user_metadata`` are indices into ``texts``, -1 where an entry has none. Other numbers that an
    entry does not have are 0.
    """

    action: NDArray[np.uint8]
    address: NDArray[np.uint64]
    size: NDArray[np.int64]
    stream: NDArray[np.int64]
    time_us: NDArray[np.int64]
    pool_id: NDArray[np.int64]
    stack: NDArray[np.int32]
    compile_context: NDArray[np.int32]
    user_metadata: NDArray[np.int32]
    texts: list[str]
    layout: Layout

    def __len__(self) -> int:
        return len(self.action)

    @property
    def keys(self) -> set[str]:
        """Every key that some entry has."""
        return self.layout.keys

    @property
    def has_pool_ids(self) -> bool:
        """Whether some entry names its pool (PyTorch from 2.12)."""
        return "pool_id" in self.keys

"""Writing a snapshot as PyTorch's own tools read it."""

from __future__ import annotations

import pickle
from typing import BinaryIO

from vramscope_analysis.snapshot.snapshot import Snapshot


def write_snapshot(snapshot: Snapshot, file: BinaryIO) -> None:
    """Write a pickle of protocol 4, the newest that PyTorch's viewer reads."""
    pickle.dump(snapshot.to_plain(), file, protocol=4)

"""PyTorch's memory snapshots: read safely into tables, and written back."""

from vramscope_analysis.snapshot.action import Action, BlockState
from vramscope_analysis.snapshot.dicts import Dicts
from vramscope_analysis.snapshot.errors import SnapshotError
from vramscope_analysis.snapshot.limits import Limits
from vramscope_analysis.snapshot.reader import read_snapshot
from vramscope_analysis.snapshot.snapshot import Snapshot
from vramscope_analysis.snapshot.tables.stacks import Frame, Frames, Stacks
from vramscope_analysis.snapshot.tables.tables import Blocks, Segments, Trace
from vramscope_analysis.snapshot.writer import write_snapshot

__all__ = [
    "Action",
    "BlockState",
    "Blocks",
    "Dicts",
    "Frame",
    "Frames",
    "Limits",
    "Segments",
    "Snapshot",
    "SnapshotError",
    "Stacks",
    "Trace",
    "read_snapshot",
    "write_snapshot",
]

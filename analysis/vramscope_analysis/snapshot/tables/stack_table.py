"""The stacks and frames of a snapshot while it is built: equal ones get one index."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_dict
from vramscope_analysis.snapshot.tables.stacks import NO_STACK, Stacks


class StackTable:
    """Gives every different list of frames an index, and every different frame."""

    def __init__(self) -> None:
        # By identity, which is how PyTorch shares frames between stacks. The objects are kept,
        # so that no other object can get their id meanwhile.
        self._frame_of_object: dict[int, int] = {}
        self._kept: list[Any] = []
        self._frame_of_content: dict[tuple[Any, ...], int] = {}
        self.frame_rows: list[dict[str, Any]] = []
        self._stack_of_content: dict[bytes, int] = {}
        self._frames = array("i")
        self._offsets = array("q", [0])

    def index(self, stack: list[Any], where: str) -> int:
        """The index of a list of frames, -1 for an empty one; SnapshotError for other lists."""
        if not stack:
            return NO_STACK
        known = self._frame_of_object
        frames = array("i")
        for frame in stack:
            index = known.get(id(frame))
            frames.append(self._frame(frame, where) if index is None else index)
        content = frames.tobytes()
        index = self._stack_of_content.get(content)
        if index is None:
            index = self._stack_of_content[content] = len(self._offsets) - 1
            self._frames.extend(frames)
            self._offsets.append(len(self._frames))
        return index

    def _frame(self, frame: Any, where: str) -> int:
        if not is_dict(frame):
            raise SnapshotError(f"{where}: expected a dict for each frame, got {shown(frame)}")
        content = _content(frame)
        index = None if content is None else self._frame_of_content.get(content)
        if index is None:
            index = len(self.frame_rows)
            self.frame_rows.append(frame)
            if content is not None:
                self._frame_of_content[content] = index
        self._frame_of_object[id(frame)] = index
        self._kept.append(frame)
        return index

    def stacks(self) -> Stacks:
        """All stacks so far."""
        return Stacks(np.array(self._offsets, np.int64), np.array(self._frames, np.int32))


def _content(frame: dict[str, Any]) -> tuple[Any, ...] | None:
    """What tells the frame from others, None if it holds something else than texts and numbers."""
    content: list[Any] = []
    for key, value in frame.items():
        if type(value) is not str and not (type(value) is int and -(1 << 62) < value < 1 << 62):
            return None
        content.append(key)
        content.append(value)
    return tuple(content)

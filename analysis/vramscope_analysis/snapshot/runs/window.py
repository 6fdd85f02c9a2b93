"""A piece of a pickle without its frame headers, ready for arithmetic on all of it at once."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.pickles.opcodes import Op
from vramscope_analysis.snapshot.pickles.source import Data

# Behind the bytes of a window: what decoding may run into before it knows that a row is none.
PADDING_BYTES = 1 << 16
_HEADER_BYTES = 9


class Window:
    """The bytes of a pickle from ``start`` on, ``size`` of them, and where each lies in the file.

    ``padded`` (uint8) holds them without the headers of frames (``Op.FRAME``) and with zeros
    behind; ``words`` (int64) holds at each offset the 8 bytes that begin there, the first lowest.
    ``cuts`` are the offsets at which a header was left out.
    """

    def __init__(self, data: Data, start: int, frame_end: int, most_bytes: int) -> None:
        """``frame_end`` is where the frame that ``start`` lies in ends, at or before: in none."""
        self.start = start
        self.padded: NDArray[np.uint8] = np.zeros(
            min(most_bytes, len(data) - start) + PADDING_BYTES, np.uint8
        )
        self.cuts: list[int] = []
        self._cut_files: list[int] = []
        self._frame_ends = [frame_end]
        self.size = 0
        self._copy(data, frame_end, most_bytes)
        self.words: NDArray[np.int64] = np.ndarray(
            len(self.padded) - 8, "<i8", buffer=self.padded, strides=(1,)
        )

    def _copy(self, data: Data, frame_end: int, most_bytes: int) -> None:
        source = np.frombuffer(data, np.uint8)
        at = self.start
        while self.size < most_bytes and at < len(source):
            end = min(len(source), at + most_bytes - self.size)
            if at < frame_end < end:
                end = frame_end
            self.padded[self.size : self.size + end - at] = source[at:end]
            self.size += end - at
            at = end
            if at != frame_end:
                continue
            length = _frame_length(data, at)
            if length < 0:
                break
            at += _HEADER_BYTES
            frame_end = at + length
            self.cuts.append(self.size)
            self._cut_files.append(at)
            self._frame_ends.append(frame_end)

    @cached_property
    def bytes(self) -> bytes:
        """The bytes as one object that can be sliced."""
        return self.padded[: self.size].tobytes()

    @property
    def end(self) -> int:
        """Where in the file the window ends."""
        return self.file_position(self.size)

    def file_position(self, offset: int) -> int:
        """Where in the file the byte at an offset lies; behind a header rather than before it."""
        piece = bisect_right(self.cuts, offset) - 1
        if piece < 0:
            return self.start + offset
        return self._cut_files[piece] + offset - self.cuts[piece]

    def frame_end(self, offset: int) -> int:
        """Where in the file the frame ends that the byte at an offset lies in."""
        return self._frame_ends[bisect_right(self.cuts, offset)]

    def offset(self, position: int) -> int:
        """The offset of a byte of the file."""
        piece = bisect_right(self._cut_files, position) - 1
        if piece < 0:
            return position - self.start
        return self.cuts[piece] + position - self._cut_files[piece]


def _frame_length(data: Data, at: int) -> int:
    """The length in the frame header at this place; -1 if there is none or it cannot be."""
    if data[at : at + 1] != bytes([Op.FRAME]):
        return -1
    length = int.from_bytes(data[at + 1 : at + _HEADER_BYTES], "little")
    return length if length <= len(data) - at - _HEADER_BYTES else -1

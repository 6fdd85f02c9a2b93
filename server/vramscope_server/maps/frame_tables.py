"""What a frame of an agent's memory map says, checked before any of it is kept. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_protocol.errors import BAD_MESSAGE, ProtocolError
from vramscope_protocol.map_columns import (
    BLOCK_COLUMNS,
    PENDING_FREE,
    SEGMENT_COLUMNS,
    unpack_columns,
)
from vramscope_protocol.messages import MapFrame

Column = NDArray[Any]
Table = dict[str, Column]

MAX_BLOCKS: Final = 1 << 16
MAX_SEGMENTS: Final = 1 << 15
"""Of one map; a frame that would make it larger ends the connection."""
MAX_TEXTS: Final = 1 << 13
MAX_TEXT_LENGTH: Final = 4096
MAX_TEXTS_BYTES: Final = 16 << 20
"""All texts of one map as a page gets them; it would be cut off for what it cannot take in."""
_MAX_WORDS: Final = 512
_MAX_RATE_HZ: Final = 100.0


class FrameTables:
    """The tables of one frame.

    Raises:
        ProtocolError: ``bad_message``, the frame says what cannot be.
    """

    def __init__(self, frame: MapFrame) -> None:
        _check_head(frame)
        self.segments = _table(SEGMENT_COLUMNS, frame.segments, frame.segment_count)
        self.blocks = _table(BLOCK_COLUMNS, frame.blocks, frame.block_count)
        self._check_segments()
        self.ends = self._ends()
        self._check_blocks(frame.first_text + len(frame.texts))

    def _check_segments(self) -> None:
        addresses, sizes = self.segments["address"], self.segments["size"]
        if len(np.unique(addresses)) != len(addresses):
            raise ProtocolError(BAD_MESSAGE, "expected each segment of a map once")
        # Below 2**62, so that no sum of an address and a size can overflow.
        for name, values, least in (("address", addresses, 0), ("size", sizes, 1)):
            if ((values < least) | (values >= 1 << 62)).any():
                raise ProtocolError(
                    BAD_MESSAGE, f"expected segments with a {name} from {least} up to 2**62"
                )
        if (self.segments["blocks"] < 0).any() or (self.segments["page_bytes"] < 0).any():
            raise ProtocolError(BAD_MESSAGE, "expected segments with no negative number of blocks")

    def _ends(self) -> Column:
        """Number of the first block after those of each segment."""
        ends = np.cumsum(self.segments["blocks"], dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        if total != len(self.blocks["size"]):
            raise ProtocolError(
                BAD_MESSAGE,
                f"expected the {total} blocks of the segments, got {len(self.blocks['size'])}",
            )
        return ends

    def _check_blocks(self, text_count: int) -> None:
        sizes = self.blocks["size"]
        if ((sizes <= 0) | (sizes >= 1 << 62)).any() or (self.blocks["requested"] < 0).any():
            raise ProtocolError(BAD_MESSAGE, "expected blocks with a size, got 0 or less")
        sums = np.concatenate(([0.0], np.cumsum(sizes, dtype=np.float64)))
        starts = np.concatenate(([0], self.ends[:-1])) if len(self.ends) else self.ends
        # As floats, which no number of blocks can overflow; sizes of memory are exact in them.
        if (sums[self.ends] - sums[starts] != self.segments["size"]).any():
            raise ProtocolError(BAD_MESSAGE, "expected blocks that fill their segment exactly")
        if (self.blocks["state"] > PENDING_FREE).any() or (self.blocks["count"] < 1).any():
            raise ProtocolError(BAD_MESSAGE, "expected blocks of a known state, at least one a row")
        for name in ("owner", "stack"):
            numbers = self.blocks[name]
            if ((numbers < -1) | (numbers >= text_count)).any():
                raise ProtocolError(BAD_MESSAGE, f"expected a {name} among {text_count} texts")
        if (self.blocks["first_step"] < -1).any() or (self.blocks["first_ms"] < -1).any():
            raise ProtocolError(BAD_MESSAGE, "expected blocks first seen at -1 or later")


def _table(columns: Mapping[str, Any], packed: bytes, count: int) -> Table:
    unpacked = unpack_columns(columns, packed, count)
    return {name: np.asarray(column) for name, column in unpacked.items()}


def _check_head(frame: MapFrame) -> None:
    if frame.base >= frame.number:
        raise ProtocolError(BAD_MESSAGE, f"expected a base below {frame.number}, got {frame.base}")
    if frame.segment_count > MAX_SEGMENTS or frame.block_count > MAX_BLOCKS:
        raise ProtocolError(
            BAD_MESSAGE,
            f"expected at most {MAX_SEGMENTS} segments and {MAX_BLOCKS} blocks, "
            f"got {frame.segment_count} and {frame.block_count}",
        )
    if not 0 <= frame.rate_hz <= _MAX_RATE_HZ:
        raise ProtocolError(BAD_MESSAGE, f"expected a rate in Hz, got {frame.rate_hz}")
    if len(frame.why_not) > _MAX_WORDS or len(frame.summary) > _MAX_WORDS:
        raise ProtocolError(BAD_MESSAGE, f"expected at most {_MAX_WORDS} characters of words")
    if len(frame.gone) > MAX_SEGMENTS:
        raise ProtocolError(BAD_MESSAGE, f"expected at most {MAX_SEGMENTS} segments that are gone")
    if frame.first_text + len(frame.texts) > MAX_TEXTS:
        raise ProtocolError(BAD_MESSAGE, f"expected at most {MAX_TEXTS} texts")
    if any(len(text) > MAX_TEXT_LENGTH for text in frame.texts):
        raise ProtocolError(BAD_MESSAGE, f"expected texts of at most {MAX_TEXT_LENGTH} characters")

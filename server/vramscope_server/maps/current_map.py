"""The memory map of one rank as it is now: the last whole frame and what has changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from vramscope_protocol.errors import BAD_MESSAGE, ProtocolError
from vramscope_protocol.map_columns import (
    BLOCK_BYTES,
    BLOCK_COLUMNS,
    SEGMENT_BYTES,
    SEGMENT_COLUMNS,
)
from vramscope_protocol.messages import MapFrame
from vramscope_server.maps.frame_tables import (
    MAX_BLOCKS,
    MAX_SEGMENTS,
    MAX_TEXTS_BYTES,
    FrameTables,
    Table,
)

_HEAD: Final = (
    "number",
    "time_ns",
    "step",
    "is_step_end",
    "rate_hz",
    "took_us",
    "why_not",
    "since_ns",
    "device_index",
    "limit_bytes",
    "device_free_bytes",
    "summary",
)
_SEGMENT_OVERHEAD_BYTES: Final = 2048
"""About what a segment costs beside its numbers."""


@dataclass(frozen=True, eq=False)
class MapParts:
    """A map as it was when it was asked for: any thread may read it.

    Args:
        head: what the last frame says of itself.
        segments: row and blocks of each, in any order; none of them is ever changed.
        texts: names of owners and stacks; only ever longer.
    """

    head: Mapping[str, Any]
    segments: Sequence[tuple[Sequence[int], Table]]
    texts: Sequence[str]


class CurrentMap:
    """Applies the frames of one connection, one after the other."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {"number": 0}
        self._segments: dict[int, tuple[list[int], Table]] = {}
        self._texts: list[str] = []
        self._block_count = 0
        self._text_bytes = 0

    @property
    def number(self) -> int:
        """Number of the last frame, 0 before the first."""
        return int(self._head["number"])

    @property
    def held_bytes(self) -> int:
        """About how much memory this map takes."""
        per_segment = SEGMENT_BYTES + _SEGMENT_OVERHEAD_BYTES
        return (
            len(self._segments) * per_segment + self._block_count * BLOCK_BYTES + self._text_bytes
        )

    def take(self, frame: MapFrame) -> dict[str, Any] | None:
        """Apply a frame and return what it says as the API has it; ``None``: its base is missing.

        Raises:
            ProtocolError: ``bad_message``; the map is as it was.
        """
        tables = FrameTables(frame)
        if frame.base == 0:
            if frame.first_text != 0:
                raise ProtocolError(BAD_MESSAGE, "expected all texts in a frame without a base")
            self._segments, self._texts = {}, []
            self._block_count = self._text_bytes = 0
        elif frame.base != self.number or frame.first_text != len(self._texts):
            return None
        text_bytes = self._text_bytes + len(msgspec.json.encode(frame.texts))
        self._check_growth(tables, text_bytes)
        for address in frame.gone:
            self._forget(address)
        self._keep(tables)
        self._texts += frame.texts
        self._text_bytes = text_bytes
        self._head = {name: getattr(frame, name) for name in _HEAD}
        return {
            **self._head,
            "base": frame.base,
            "segments": _plain(tables.segments),
            "blocks": _plain(tables.blocks),
            "gone": frame.gone,
            "first_text": frame.first_text,
            "texts": frame.texts,
        }

    def parts(self) -> MapParts:
        """The same without a copy of any block."""
        return MapParts(self._head, list(self._segments.values()), self._texts)

    def whole(self) -> dict[str, Any]:
        """Everything, in the form of a frame without a base."""
        tables = [table for _, table in self._segments.values()]
        rows = [row for row, _ in self._segments.values()]
        return {
            **self._head,
            "base": 0,
            "segments": {
                name: [row[position] for row in rows]
                for position, name in enumerate(SEGMENT_COLUMNS)
            },
            "blocks": {name: _joined(table[name] for table in tables) for name in BLOCK_COLUMNS},
            "gone": [],
            "first_text": 0,
            "texts": self._texts,
        }

    def _check_growth(self, tables: FrameTables, text_bytes: int) -> None:
        if text_bytes > MAX_TEXTS_BYTES:
            raise ProtocolError(
                BAD_MESSAGE, f"expected a map with at most {MAX_TEXTS_BYTES} bytes of texts"
            )
        segments = len(self._segments) + len(tables.ends)
        blocks = self._block_count + len(tables.blocks["size"])
        # Twice, because what is replaced is still counted.
        if segments > 2 * MAX_SEGMENTS or blocks > 2 * MAX_BLOCKS:
            raise ProtocolError(
                BAD_MESSAGE,
                f"expected a map of at most {MAX_SEGMENTS} segments and {MAX_BLOCKS} blocks",
            )

    def _keep(self, tables: FrameTables) -> None:
        rows = zip(*(tables.segments[name].tolist() for name in SEGMENT_COLUMNS), strict=True)
        start = 0
        for row, end in zip(rows, tables.ends.tolist(), strict=True):
            self._forget(row[0])
            # Copied: a view would keep the whole frame for one segment of it.
            blocks = {name: tables.blocks[name][start:end].copy() for name in BLOCK_COLUMNS}
            self._segments[row[0]] = (list(row), blocks)
            self._block_count += end - start
            start = end

    def _forget(self, address: int) -> None:
        known = self._segments.pop(address, None)
        if known is not None:
            self._block_count -= len(known[1]["size"])


def _plain(table: Table) -> dict[str, list[int]]:
    return {name: column.tolist() for name, column in table.items()}


def _joined(columns: Iterable[Any]) -> list[int]:
    parts = list(columns)
    joined: list[int] = np.concatenate(parts).tolist() if parts else []
    return joined

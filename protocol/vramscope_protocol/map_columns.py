"""The columns of a memory map frame: one packed little-endian array each, in a fixed order.

Blocks lie one after another and fill their segment, so a block needs no offset: it begins where
the one before it ends. The blocks of all segments of a frame make one table, in the order of the
segments; ``blocks`` of a segment says how many are its own.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from vramscope_protocol.errors import BAD_MESSAGE, ProtocolError

Code = Literal["q", "i", "B"]

ITEM_BYTES: Final[dict[Code, int]] = {"q": 8, "i": 4, "B": 1}

SEGMENT_COLUMNS: Final[dict[str, Code]] = {
    "address": "q",
    "size": "q",
    "stream": "q",
    "pool_owner": "q",
    "pool_number": "q",
    "page_bytes": "q",
    "flags": "B",
    "blocks": "i",
}
"""``pool_owner`` and ``pool_number`` are PyTorch's pool id, (0, 0) is the default pool;
``page_bytes`` is 0 but for expandable segments; ``flags`` is a sum of the flags below."""

BLOCK_COLUMNS: Final[dict[str, Code]] = {
    "size": "q",
    "requested": "q",
    "state": "B",
    "category": "B",
    "owner": "i",
    "stack": "i",
    "first_step": "i",
    "first_ms": "q",
    "count": "i",
}
"""``owner`` and ``stack`` are numbers of texts, -1 without one; ``first_step`` and ``first_ms`` say
when the block was first seen, -1 if it was there at the first look; ``count`` is above 1 where
neighbours are shown as one."""

LARGE: Final = 1
EXPANDABLE: Final = 2
PRIVATE: Final = 4
SUMMARISED: Final = 8
"""Flags of a segment; without ``LARGE`` it serves requests of up to 1 MiB, ``SUMMARISED`` says
that neighbouring blocks of it are shown as one."""

FREE: Final = 0
ALLOCATED: Final = 1
PENDING_FREE: Final = 2
"""States of a block."""

STATES: Final[dict[str, int]] = {
    "inactive": FREE,
    "active_allocated": ALLOCATED,
    "active_pending_free": PENDING_FREE,
    "active_awaiting_free": PENDING_FREE,
}
"""PyTorch's words for them; the last is the one of its documentation."""

SEGMENT_BYTES: Final = sum(ITEM_BYTES[code] for code in SEGMENT_COLUMNS.values())
BLOCK_BYTES: Final = sum(ITEM_BYTES[code] for code in BLOCK_COLUMNS.values())


def pack_columns(columns: Mapping[str, Code], values: Mapping[str, Iterable[int]]) -> bytes:
    """Join columns of equal length, in the order of ``columns``."""
    parts: list[bytes] = []
    for name, code in columns.items():
        column = array(code, values[name])
        if sys.byteorder == "big":
            column.byteswap()
        parts.append(column.tobytes())
    return b"".join(parts)


def unpack_columns(columns: Mapping[str, Code], packed: bytes, count: int) -> dict[str, array[Any]]:
    """Split packed columns of ``count`` rows.

    Raises:
        ProtocolError: ``bad_message``, there are not exactly that many rows.
    """
    expected = count * sum(ITEM_BYTES[code] for code in columns.values())
    if len(packed) != expected:
        raise ProtocolError(
            BAD_MESSAGE,
            f"expected {expected} bytes for {count} rows of a map, got {len(packed)}",
        )
    found: dict[str, array[Any]] = {}
    offset = 0
    for name, code in columns.items():
        column: array[Any] = array(code)
        column.frombytes(packed[offset : offset + count * ITEM_BYTES[code]])
        if sys.byteorder == "big":
            column.byteswap()
        offset += count * ITEM_BYTES[code]
        found[name] = column
    return found

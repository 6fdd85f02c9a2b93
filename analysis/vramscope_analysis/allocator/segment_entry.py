"""One segment of a snapshot, read: what a model needs of it, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from vramscope_analysis.allocator.events import PoolId
from vramscope_analysis.allocator.pool import DEFAULT_POOL_ID

WAITING_STATES: Final = ("active_pending_free", "active_awaiting_free")
"""A freed block that another stream may still use: as PyTorch writes it, and as it documents it."""


class BlockEntry(NamedTuple):
    """One block of a snapshot. ``registration`` is not in PyTorch's structure."""

    size_bytes: int
    requested_bytes: int
    state: str
    registration: int | None = None


@dataclass(frozen=True)
class SegmentEntry:
    """One segment of a snapshot: a plain one, or a mapped piece of an expandable one.

    ``registration``, ``range_address`` and ``page_bytes`` are not in PyTorch's structure.
    """

    address: int
    size_bytes: int
    stream: int
    is_small: bool
    pool_id: PoolId
    is_expandable: bool
    blocks: tuple[BlockEntry, ...]
    registration: int | None
    range_address: int | None
    page_bytes: int | None

    @property
    def end(self) -> int:
        """Address behind it."""
        return self.address + self.size_bytes


def read_segments(segments: Iterable[Mapping[str, Any]]) -> list[SegmentEntry]:
    """Segments by address.

    Raises:
        ValueError: a key is missing, blocks do not fill their segment, or segments overlap.
    """
    entries = sorted(map(_read_segment, segments), key=lambda entry: entry.address)
    for before, after in pairwise(entries):
        if before.end > after.address:
            raise ValueError(
                f"expected segments apart, got one at {after.address:#x} that begins in another"
            )
    return entries


def _read_segment(segment: Mapping[str, Any]) -> SegmentEntry:
    try:
        address, size_bytes = int(segment["address"]), int(segment["total_size"])
        blocks = tuple(_read_block(block) for block in segment["blocks"])
        first, second = segment.get("segment_pool_id", DEFAULT_POOL_ID)
        entry = SegmentEntry(
            address=address,
            size_bytes=size_bytes,
            stream=int(segment["stream"]),
            is_small=segment["segment_type"] == "small",
            pool_id=(int(first), int(second)),
            is_expandable=bool(segment.get("is_expandable", False)),
            blocks=blocks,
            registration=segment.get("registration"),
            range_address=segment.get("range_address"),
            page_bytes=segment.get("page_bytes"),
        )
    except KeyError as missing:
        raise ValueError(f"expected a segment with {missing}, got {sorted(segment)}") from None
    filled_bytes = sum(block.size_bytes for block in blocks)
    if not blocks or filled_bytes != size_bytes:
        raise ValueError(
            f"expected blocks of {size_bytes} bytes in the segment at {address:#x}, "
            f"got {filled_bytes}"
        )
    if entry.range_address is not None and entry.range_address > address:
        raise ValueError(
            f"expected a range_address up to {address:#x}, got {entry.range_address:#x}"
        )
    return entry


def _read_block(block: Mapping[str, Any]) -> BlockEntry:
    size_bytes = int(block["size"])
    state = str(block["state"])
    if size_bytes <= 0:
        raise ValueError(f"expected a block with a size, got {size_bytes} bytes")
    if state not in ("active_allocated", "inactive", *WAITING_STATES):
        raise ValueError(f"expected the state of a block, got {state!r}")
    requested_bytes = int(block.get("requested_size", 0))
    return BlockEntry(size_bytes, requested_bytes, state, block.get("registration"))

"""How much was missing when memory ran out, and where the rest of it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vramscope_analysis.allocator.rounding import SMALL_BYTES
from vramscope_analysis.diagnosis.oom_message import sizes_in
from vramscope_analysis.evidence.entry_values import amount_in
from vramscope_analysis.evidence.oom_report import OomReport

_ALLOCATED: Final = "allocated_bytes.all.current"
_ACTIVE: Final = "active_bytes.all.current"
_RESERVED: Final = "reserved_bytes.all.current"


@dataclass(frozen=True)
class Shortage:
    """The memory of the process at the failure. None is not known.

    Args:
        request_bytes: what was asked for; where only the segment is known, that.
        segment_bytes: what the allocator asked of the driver for it.
        allocated_bytes: in tensors then.
        reserved_bytes: held by the allocator then, after it had given back what it could.
        allowed_bytes: most that the process could have had of the device.
        limit_is_own: it has a cap of its own below the device.
        room_bytes: what could still have been taken: the less of what the cap and the device left.
        is_at_own_limit: the cap left less than the device did.
        missing_bytes: by how much the segment was larger than the room.
        pieces_bytes: free in the pool of the request, outside of private pools.
        largest_bytes: the largest of these pieces.
        returnable_bytes: free in whole segments, which the allocator could give back.
        carved_bytes: the largest segment with pieces in it that live blocks keep apart.
        other_bytes: held by other processes; None if nobody can see them.
        withheld_bytes: free on the device beyond the process's own cap.
    """

    request_bytes: int | None
    segment_bytes: int | None
    allocated_bytes: int | None
    reserved_bytes: int | None
    allowed_bytes: int | None
    limit_is_own: bool
    room_bytes: int | None
    is_at_own_limit: bool
    missing_bytes: int | None
    pieces_bytes: int | None
    largest_bytes: int | None
    returnable_bytes: int | None
    carved_bytes: int | None
    other_bytes: int | None
    withheld_bytes: int | None

    @classmethod
    def of(cls, report: OomReport) -> Shortage:
        """What the counters, the driver and PyTorch's own words say; the first that know it."""
        words = sizes_in(report.message)
        segment = _first(report.segment_bytes, words.get("segment_bytes"), report.request_bytes)
        request = _first(report.request_bytes, segment)
        allocated = _first(report.counters.get(_ALLOCATED), words.get("allocated_bytes"))
        reserved = _first(report.counters.get(_RESERVED), _sum(words, "allocated", "cached"))
        total = _first(report.device_total_bytes, words.get("total_bytes"))
        allowed = _first(report.allowed_bytes, words.get("allowed_bytes"), total)
        free = _first(report.device_free_bytes, words.get("free_bytes"))
        left = None if allowed is None or reserved is None else max(allowed - reserved, 0)
        room = free if left is None else left if free is None else min(left, free)
        pieces, largest, returnable, carved = _pieces(report, request)
        if pieces is None and reserved is not None:
            active = _first(report.counters.get(_ACTIVE), allocated)
            pieces = None if active is None else max(reserved - active, 0)
        # Where the device itself could have served it, something below the device refused.
        refused_below = free is not None and segment is not None and free >= segment
        own_limit = allowed is not None and (refused_below if total is None else allowed < total)
        return cls(
            request_bytes=request,
            segment_bytes=segment,
            allocated_bytes=allocated,
            reserved_bytes=reserved,
            allowed_bytes=allowed,
            limit_is_own=own_limit,
            room_bytes=room,
            is_at_own_limit=own_limit and (free is None or refused_below),
            missing_bytes=None if segment is None or room is None else max(segment - room, 0),
            pieces_bytes=pieces,
            largest_bytes=largest,
            returnable_bytes=returnable,
            carved_bytes=carved,
            other_bytes=_others(report.processes),
            withheld_bytes=(
                max(free - left, 0) if own_limit and free is not None and left is not None else None
            ),
        )

    @property
    def largest_left_bytes(self) -> int | None:
        """The largest piece that a request could have had: a free block, or the room."""
        known = [size for size in (self.largest_bytes, self.room_bytes) if size is not None]
        return max(known) if known else None

    @property
    def needed_bytes(self) -> int | None:
        """What tensors would have held, had the request been granted."""
        if self.allocated_bytes is None or self.request_bytes is None:
            return None
        return self.allocated_bytes + self.request_bytes

    @property
    def was_whole(self) -> bool:
        """Whether a segment that is carved up now was taken for a request as large as this."""
        if not self.carved_bytes or self.segment_bytes is None:
            return False
        return self.carved_bytes >= self.segment_bytes

    @property
    def fits_in_pieces(self) -> bool:
        """Whether free pieces and room together would have been enough, and no one of them was."""
        if self.pieces_bytes is None or self.request_bytes is None or self.room_bytes is None:
            return False
        if self.largest_bytes is not None and self.largest_bytes >= self.request_bytes:
            return False  # it was of another stream: not a matter of pieces
        return self.pieces_bytes + self.room_bytes >= self.request_bytes > self.room_bytes


def _pieces(
    report: OomReport, request_bytes: int | None
) -> tuple[int | None, int | None, int | None, int | None]:
    """Free bytes and the largest free block in the pool of a request, returnable bytes of all
    pools, and the largest segment of the request's pool that is carved up."""
    if not report.free_blocks:
        return None, None, None, None
    kind = "small" if request_bytes is not None and request_bytes <= SMALL_BYTES else "large"
    rows = [row for row in report.free_blocks if str(row.get("pool", "large")) == kind]
    largest = [amount_in(row, "largest_bytes") for row in rows]
    return (
        sum(amount_in(row, "bytes") for row in rows),
        max(largest, default=0),
        sum(amount_in(row, "returnable_bytes") for row in report.free_blocks),
        max((amount_in(row, "largest_segment_bytes") for row in rows), default=0),
    )


def _others(processes: Iterable[Mapping[str, Any]]) -> int | None:
    told = list(processes)
    if not told:
        return None
    return sum(amount_in(process, "bytes") for process in told if not process.get("own"))


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _sum(words: Mapping[str, int], *names: str) -> int | None:
    found = [words.get(f"{name}_bytes") for name in names]
    return None if None in found else sum(size for size in found if size is not None)

"""What a replay made against what was recorded."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vramscope_analysis.replay.placement import SegmentEvent

KEPT_MISMATCHES: Final = 10
"""Mismatches described one by one; the others are only counted."""

SEGMENT_KEYS: Final = (
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "stream",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
)
BLOCK_KEYS: Final = ("address", "size", "requested_size", "state")


@dataclass(frozen=True)
class Mismatch:
    """One difference.

    Args:
        event: position of the entry at which it shows; the number of entries for the end.
        kind: ``segment``, ``block`` or ``final``.
        expected: what the recording has.
        got: what the replay made.
    """

    event: int
    kind: str
    expected: str
    got: str


@dataclass(frozen=True)
class SegmentMismatch:
    """All segment events of the first call whose events differ.

    Args:
        event: position of the call's entry.
        expected: what the recording has.
        made: what the replay made.
    """

    event: int
    expected: tuple[SegmentEvent, ...]
    made: tuple[SegmentEvent, ...]


class Comparison:
    """Counts differences and keeps the first of them."""

    def __init__(self) -> None:
        self.segment_mismatches = 0
        self.block_mismatches = 0
        self.final_mismatches = 0
        self.first: list[Mismatch] = []
        self.first_segments: SegmentMismatch | None = None

    def segments(
        self, event: int, expected: Sequence[SegmentEvent], made: Sequence[SegmentEvent]
    ) -> None:
        """Compare the segment events of one call; an extra or a missing one is one mismatch.

        What agrees at the start and at the end of the call does so even if something in between
        is extra or missing.
        """
        if expected == made:
            return
        shorter = min(len(expected), len(made))
        front = 0
        while front < shorter and expected[front] == made[front]:
            front += 1
        back = 0
        while back < shorter - front and expected[-1 - back] == made[-1 - back]:
            back += 1
        wanted = expected[front : len(expected) - back]
        got = made[front : len(made) - back]
        self.segment_mismatches += max(len(wanted), len(got))
        if self.first_segments is None:
            self.first_segments = SegmentMismatch(event, tuple(expected), tuple(made))
        for one, other in itertools.zip_longest(wanted, got):
            self._keep(event, "segment", _segment_text(one), _segment_text(other))

    def block(self, event: int, expected: str, got: str) -> None:
        """A block that is not where it was recorded, or not there at all."""
        self.block_mismatches += 1
        self._keep(event, "block", expected, got)

    def final(
        self, event: int, expected: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]
    ) -> None:
        """Compare the segments at the end: totals, blocks, states. One mismatch a segment."""
        wanted = {int(segment["address"]): _final_values(segment) for segment in expected}
        got = {int(segment["address"]): _final_values(segment) for segment in made}
        for address in sorted(wanted.keys() | got.keys()):
            one, other = wanted.get(address), got.get(address)
            if one != other:
                self.final_mismatches += 1
                self._keep(event, "final", *_first_difference(address, one, other))

    def _keep(self, event: int, kind: str, expected: str, got: str) -> None:
        if len(self.first) < KEPT_MISMATCHES:
            self.first.append(Mismatch(event, kind, expected, got))


def _segment_text(event: SegmentEvent | None) -> str:
    if event is None:
        return "nothing"
    action, address, size_bytes, stream = event
    return f"{action} of {size_bytes} B at {address:#x} on stream {stream}"


def _final_values(segment: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What there is to compare of a segment, in an order."""
    address = int(segment["address"])
    values = [(f"{key} of segment {address:#x}", segment.get(key)) for key in SEGMENT_KEYS]
    for block in segment["blocks"]:
        # A free block still shows what was last asked of it: nothing depends on that.
        free = block["state"] == "inactive"
        keys = [key for key in BLOCK_KEYS if not (free and key == "requested_size")]
        at = int(block["address"])
        values += [(f"{key} of block {at:#x}", block[key]) for key in keys]
    return values


def _first_difference(
    address: int, expected: list[tuple[str, Any]] | None, got: list[tuple[str, Any]] | None
) -> tuple[str, str]:
    if expected is None or got is None:
        segment, nothing = f"segment {address:#x}", f"no segment {address:#x}"
        return (segment, nothing) if got is None else (nothing, segment)
    pairs = itertools.zip_longest(expected, got, fillvalue=("end of segment", address))
    one, other = next(pair for pair in pairs if pair[0] != pair[1])
    return f"{one[0]}: {one[1]}", f"{other[0]}: {other[1]}"

"""Where the address ranges of expandable segments begin: a snapshot shows mapped pages only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vramscope_analysis.allocator import PoolId
from vramscope_analysis.allocator.rounding import SMALL_BYTES
from vramscope_analysis.replay.past.held_memory import HeldSegment, MappedPages, pool_of
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action

NEW_MEMORY_FOR: Final = (int(Action.ALLOC), int(Action.OOM))
"""What a mapping ends in: its size tells small pages from large ones."""


class _Range:
    """The pages of one expandable segment, from one moment of the recording on.

    Args:
        first: the lowest of them.
        after: where what lies below them ends: ranges of addresses never overlap.
    """

    def __init__(self, first: HeldSegment, after: int) -> None:
        self.after = after
        self.stream = first.stream
        self.pool_id = first.pool_id
        self.is_small = first.is_small
        self.address = first.address
        self.pages = MappedPages()

    @property
    def key(self) -> tuple[int, PoolId | None, bool | None]:
        """What all of its pages have in common."""
        return self.stream, self.pool_id, self.is_small

    def takes(self, address: int, stream: int, pool_id: PoolId | None, is_small: bool) -> bool:
        """Whether such pages belong to it. A range without any page is given up."""
        return (
            len(self.pages) > 0
            and address >= self.after
            and self.stream == stream
            and self.is_small == is_small
            and pool_id in (None, self.pool_id)
        )


def range_addresses(
    recording: Recording, position: int, held: Sequence[HeldSegment]
) -> dict[int, int]:
    """Lowest address that each expandable segment is ever mapped at, as long as it exists.

    The allocator fills gaps from the lowest address up (``find_expandable_block``), so what lies
    unmapped in front of the pages counts as well. What is never mapped again does not. Pages with
    others in between are two ranges, whatever they have in common: their pool may not be known.

    Args:
        recording: its entries from ``position`` on.
        position: when ``held`` was held.
        held: by address, with the pools known; what is not expandable is passed over.

    Returns:
        By address of the held segment: the lowest one of its range.
    """
    ranges: list[_Range] = []
    range_of: dict[int, _Range] = {}
    end, is_parted = 0, True
    for pages in held:
        if pages.is_expandable:
            key = (pages.stream, pages.pool_id, pages.is_small)
            if is_parted or ranges[-1].key != key:
                ranges.append(_Range(pages, end))
            ranges[-1].pages.add(pages)
            range_of[pages.address] = ranges[-1]
        end, is_parted = pages.end, not pages.is_expandable
    if ranges:
        _follow(recording, position, ranges)
    return {address: found.address for address, found in range_of.items()}


def _follow(recording: Recording, position: int, ranges: list[_Range]) -> None:
    events = recording.events
    causes = np.flatnonzero(np.isin(events.actions, NEW_MEMORY_FOR))
    changes = np.flatnonzero(np.isin(events.actions, (Action.SEGMENT_MAP, Action.SEGMENT_UNMAP)))
    changed: list[int] = changes[changes >= position].tolist()
    for entry in changed:
        address, size_bytes = int(events.addresses[entry]), int(events.sizes[entry])
        if events.actions[entry] == Action.SEGMENT_UNMAP:
            for mapped in ranges:
                if mapped.pages.at(address) is not None:
                    mapped.pages.remove(address, address + size_bytes)
            continue
        cause = int(np.searchsorted(causes, entry))
        if cause == len(causes):
            return
        is_small = bool(events.sizes[causes[cause]] <= SMALL_BYTES)
        stream = int(events.streams[entry])
        pool_id = pool_of(events, entry)
        fitting = [mapped for mapped in ranges if mapped.takes(address, stream, pool_id, is_small)]
        if fitting:
            mapped = min(fitting, key=lambda other: abs(other.address - address))
            mapped.address = min(mapped.address, address)
            mapped.pages.add(
                HeldSegment(address, size_bytes, stream, pool_id, is_small, True, None)
            )

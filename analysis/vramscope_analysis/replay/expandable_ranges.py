"""Where the address ranges of expandable segments begin: a snapshot shows mapped pages only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vramscope_analysis.allocator import PoolId
from vramscope_analysis.allocator.rounding import SMALL_BYTES
from vramscope_analysis.replay.held_memory import HeldSegment, MappedPages, pool_of
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action

NEW_MEMORY_FOR: Final = (int(Action.ALLOC), int(Action.OOM))
"""What a mapping ends in: its size tells small pages from large ones."""


class _Range:
    """The pages of one expandable segment, from one moment of the recording on."""

    def __init__(self, first: HeldSegment) -> None:
        self.stream = first.stream
        self.pool_id = first.pool_id
        self.is_small = first.is_small
        self.address = first.address
        self.pages = MappedPages()

    def takes(self, stream: int, pool_id: PoolId | None, is_small: bool) -> bool:
        """Whether such pages belong to it. A range without any page is given up."""
        return (
            len(self.pages) > 0
            and self.stream == stream
            and self.is_small == is_small
            and pool_id in (None, self.pool_id)
        )


def range_addresses(
    recording: Recording, position: int, held: Sequence[HeldSegment]
) -> dict[int, int]:
    """Lowest address that each expandable segment is ever mapped at, as long as it exists.

    The allocator fills gaps from the lowest address up (``find_expandable_block``), so what lies
    unmapped in front of the pages counts as well. What is never mapped again does not.

    Args:
        recording: its entries from ``position`` on.
        position: when ``held`` was held.
        held: by address, with the pools known; what is not expandable is passed over.

    Returns:
        By address of the held segment: the lowest one of its range.
    """
    ranges: dict[tuple[int, PoolId | None, bool | None], _Range] = {}
    for pages in held:
        if pages.is_expandable:
            key = (pages.stream, pages.pool_id, pages.is_small)
            ranges.setdefault(key, _Range(pages)).pages.add(pages)
    if ranges:
        _follow(recording, position, list(ranges.values()))
    return {
        pages.address: ranges[pages.stream, pages.pool_id, pages.is_small].address
        for pages in held
        if pages.is_expandable
    }


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
        fitting = [mapped for mapped in ranges if mapped.takes(stream, pool_id, is_small)]
        if fitting:
            mapped = min(fitting, key=lambda other: abs(other.address - address))
            mapped.address = min(mapped.address, address)
            mapped.pages.add(
                HeldSegment(address, size_bytes, stream, pool_id, is_small, True, None)
            )

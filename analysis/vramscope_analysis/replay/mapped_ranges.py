"""The address ranges of expandable segments, as far as pages were ever mapped into them."""

from __future__ import annotations

from vramscope_analysis.replay.recording import Events
from vramscope_analysis.snapshot import Action

Range = tuple[int, int]
"""(first address, first address behind)."""


def mapped_ranges(events: Events) -> list[Range]:
    """What was mapped without a gap at any time, by address.

    Pages are mapped from the start of a range on (``find_expandable_block``), so that one range
    leaves no gap, and ranges are far too large for another to begin where its pages end.
    """
    mapped = events.actions == Action.SEGMENT_MAP
    starts: list[int] = events.addresses[mapped].tolist()
    sizes: list[int] = events.sizes[mapped].tolist()
    found: list[Range] = []
    for start, size_bytes in sorted(zip(starts, sizes, strict=True)):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], start + size_bytes))
        else:
            found.append((start, start + size_bytes))
    return found

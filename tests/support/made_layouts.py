"""Memory layouts from a few words: segments, what lies in them, and of which pool they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vramscope_analysis.evidence.layout_reading import HeldSegments, LiveBlocks, layout_of
from vramscope_analysis.evidence.memory_layout import MemoryLayout

MIB = 1 << 20
APART = 1 << 40
"""Addresses between two segments."""

Segment = tuple[str, int, str]
"""Pool, stream, and words as ``s4`` (a block of 4 MiB that stays), ``a4`` (one that does not) and
``f4`` (free)."""


def columns_of(segments: Sequence[Segment], page_bytes: int = 0) -> tuple[HeldSegments, LiveBlocks]:
    """The tables that a layout is read from."""
    starts: list[int] = []
    sizes: list[int] = []
    blocks: list[tuple[int, int, bool, str]] = []
    for number, (_, _, words) in enumerate(segments):
        at = starts_at = (number + 1) * APART
        for word in words.split():
            size = int(float(word[1:]) * MIB)
            if word[0] != "f":
                blocks.append((at, size, word[0] == "s", "fc.weight" if word[0] == "s" else ""))
            at += size
        starts.append(starts_at)
        sizes.append(at - starts_at)
    held = HeldSegments(
        np.array(starts, np.int64),
        np.array(sizes, np.int64),
        np.array([stream for _, stream, _ in segments], np.int64),
        [pool for pool, _, _ in segments],
        np.full(len(segments), page_bytes, np.int64),
    )
    return held, LiveBlocks(
        np.array([block[0] for block in blocks], np.int64),
        np.array([block[1] for block in blocks], np.int64),
        np.array([block[2] for block in blocks], np.bool_),
        [block[3] for block in blocks],
    )


def made_layout(*segments: str | Segment, page_bytes: int = 0, **more: Any) -> MemoryLayout:
    """A layout; words alone are a large segment of the default stream."""
    whole = [("large", 0, each) if isinstance(each, str) else each for each in segments]
    pools, pins = layout_of(*columns_of(whole, page_bytes))
    return MemoryLayout(tuple(pools), tuple(pins), **more)

"""The layout of memory at a moment of a recording."""

from __future__ import annotations

from typing import Final

import numpy as np

from vramscope_analysis.evidence.layout_reading import HeldSegments, LiveBlocks, layout_of
from vramscope_analysis.evidence.memory_layout import MemoryLayout
from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.free_pieces import ranges_at
from vramscope_analysis.moments.recorded_memory import RecordedMemory

_ANY_PAGE: Final = 1 << 62
"""A recording does not tell the size of pages: that none is whole is the least that is true."""


def window_layout(memory: RecordedMemory, moment: int | None = None) -> MemoryLayout:
    """Pools at a moment; a block stays if it outlives the recording.

    Args:
        memory: a device of a snapshot.
        moment: None is the first at which most was reserved.
    """
    if moment is None:
        moment = int(np.argmax(memory.reserved_bytes)) - 1
    held = ranges_at(memory, moment)
    segments = HeldSegments(
        start=np.array([each.start for each in held], np.int64),
        size=np.array([each.end - each.start for each in held], np.int64),
        stream=np.array([each.stream for each in held], np.int64),
        pool=[each.pool for each in held],
        page_bytes=np.array([_ANY_PAGE * each.is_expandable for each in held], np.int64),
    )
    lifetimes = memory.lifetimes
    live = lifetimes.live_at(moment)
    live = live[np.argsort(lifetimes.address[live], kind="stable")]
    # A gradient of the last step is there at the end as well: it goes with the next one.
    stays = lifetimes.completed[live] >= lifetimes.entries
    stays &= memory.category_of[live] != Category.GRADIENTS
    lines = [source.line if source.file else "" for source in memory.sources]
    of_block: list[int] = memory.source_of[live].tolist()
    blocks = LiveBlocks(
        start=lifetimes.address[live].astype(np.int64),
        size=lifetimes.size[live],
        stays=stays,
        name=[lines[source] for source in of_block],
    )
    pools, pins = layout_of(segments, blocks)
    return MemoryLayout(
        tuple(pools),
        tuple(pins),
        time_ns=1000 * int(memory.time_us[moment]) if moment >= 0 else 0,
    )

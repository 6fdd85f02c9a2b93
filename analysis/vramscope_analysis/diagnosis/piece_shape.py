"""What kind of fragmentation it is, told by where the free memory lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.words import count_text, size_text
from vramscope_analysis.evidence.memory_layout import MemoryLayout, Pin, PoolLayout

STREAM_POOLS: Final = "stream pools"
STATIC: Final = "static"
SIZE_MIX: Final = "size-mix"
MOST_SHARE: Final = 0.5
"""Half of what is free makes it that kind."""


@dataclass(frozen=True)
class PieceShape:
    """One kind of fragmentation.

    Args:
        kind: ``stream pools``, ``static`` or ``size-mix``.
        short: where the pieces lie, as the end of a sentence.
        words: the same with numbers, a sentence of its own.
        pool: the pool with most of them.
    """

    kind: str
    short: str
    words: str
    pool: PoolLayout


def shape_of(layout: MemoryLayout) -> PieceShape | None:
    """Where most of what is free lies; None where nothing is."""
    free = layout.free_bytes
    if not free:
        return None
    main = layout.main_stream
    elsewhere = [pool for pool in layout.shared if pool.stream != main]
    apart = sum(pool.free_bytes for pool in elsewhere)
    if apart >= MOST_SHARE * free:
        pool = max(elsewhere, key=lambda each: each.free_bytes)
        return PieceShape(
            STREAM_POOLS,
            "other streams keep them",
            f"Stream pools: {size_text(apart)} of {size_text(free)} free belong to other streams "
            f"than {stream_text(main)}, which has most in use; {size_text(pool.free_bytes)} to "
            f"{stream_text(pool.stream)}. Streams share nothing.",
            pool,
        )
    pool = max(layout.shared, key=lambda each: each.free_bytes)
    if layout.pinned_bytes >= MOST_SHARE * free:
        pool = max(layout.shared, key=lambda each: each.pinned_bytes)
        return PieceShape(
            STATIC,
            "they lie beside blocks that stay",
            f"Static: {size_text(layout.pinned_bytes)} of {size_text(free)} free lie in segments "
            f"kept by {_pins_text(layout.pins)}; the largest piece is "
            f"{size_text(layout.largest_bytes)}.",
            pool,
        )
    return PieceShape(
        SIZE_MIX,
        "they lie in pieces",
        f"Size-mix: {size_text(free)} free are cut into {count_text(_pieces(layout), 'piece')} "
        f"by blocks of changing sizes; the largest is {size_text(layout.largest_bytes)}.",
        pool,
    )


def shape_remedies(shape: PieceShape | None) -> tuple[Remedy, ...]:
    """What the job itself can do about it; no setting, which only a replay may advise."""
    if shape is None or shape.kind == SIZE_MIX:
        return ()
    if shape.kind == STATIC:
        return (
            Remedy(
                "allocate what stays before the first step",
                "Blocks that last then lie beside each other, and not in the segments of steps.",
            ),
        )
    return (
        Remedy(
            "use fewer streams for work that allocates",
            "Each stream has blocks of its own, and none can use those of another.",
        ),
    )


def stream_text(stream: int | None) -> str:
    """A stream as a person would call it."""
    return f"stream {stream:#x}" if stream else "the default stream"


def _pieces(layout: MemoryLayout) -> int:
    return sum(pool.pieces for pool in layout.shared)


def _pins_text(pins: tuple[Pin, ...]) -> str:
    """Who pins, with the name that pins most."""
    blocks = sum(pin.blocks for pin in pins)
    live = size_text(sum(pin.live_bytes for pin in pins))
    named = next((pin.name for pin in pins if pin.name), "")
    such = f", such as {named}" if named else ""
    return f"{count_text(blocks, 'block')} that stay ({live}{such})"

"""Random jobs for recordings: streams, private pools and frees that wait, under many settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from vramscope_analysis.allocator import (
    AllocatorSettings,
    Block,
    CachingAllocator,
    OutOfMemoryError,
)

KIB: Final = 1 << 10
MIB: Final = 1 << 20
OWN_STREAMS: Final = (0, 7)
OTHER_STREAM: Final = 99
PRIVATE_POOL: Final = (1, 0)

SETTINGS: Final = (
    AllocatorSettings(),
    AllocatorSettings(expandable_segments=True),
    AllocatorSettings(max_split_size_bytes=24 * MIB),
    AllocatorSettings(roundup_power2_divisions=(4,) * 16),
    AllocatorSettings(garbage_collection_threshold=0.5),
)

SIZES: Final = st.one_of(
    st.integers(1, MIB),
    st.integers(2048, 8192).map(lambda count: count * 512 - 7),
    st.sampled_from([1536 * KIB, 2 * MIB, 2560 * KIB, 3 * MIB, 4 * MIB]),
    st.integers(10, 40).map(lambda count: count * MIB),
)

Call = tuple[str, int, int]
"""(what, an operand, another): see :meth:`Program.make`."""


@dataclass(frozen=True)
class Job:
    """A program, and the allocator that it runs on."""

    settings: AllocatorSettings
    version: tuple[int, int]
    limit_bytes: int | None
    calls: list[Call]


class Program:
    """Makes calls, and knows the blocks that it holds by their addresses."""

    def __init__(
        self,
        model: CachingAllocator,
        blocks: dict[int, Block] | None = None,
        live: Sequence[int] = (),
        waiting: Sequence[int] = (),
    ) -> None:
        self.model = model
        self.blocks = {} if blocks is None else blocks
        self.live = list(live)
        self.waiting = list(waiting)

    def make(self, call: Call) -> None:
        """Make one call.

        ``malloc`` takes a size and where from: a stream and a pool. ``free`` and ``free_in_use``
        (by another stream) take any number, which chooses a live block; ``complete_free`` one
        that chooses among those still in use. ``empty_cache`` takes none.
        """
        what, number, place = call
        if what == "malloc":
            self._malloc(number, place)
        elif what == "empty_cache":
            self.model.empty_cache()
        elif what == "complete_free":
            if self.waiting:
                address = self.waiting.pop(number % len(self.waiting))
                self.model.complete_free(self.blocks.pop(address))
        elif self.live:
            address = self.live.pop(number % len(self.live))
            block = self.blocks[address]
            if what == "free_in_use":
                self.model.record_stream(block, OTHER_STREAM)
                self.waiting.append(address)
            else:
                del self.blocks[address]
            self.model.free(block)
        self._forget_completed()

    def _malloc(self, size_bytes: int, place: int) -> None:
        stream = OWN_STREAMS[place % len(OWN_STREAMS)]
        pool_id = PRIVATE_POOL if place >= len(OWN_STREAMS) else None
        try:
            block = self.model.malloc(size_bytes, stream, pool_id)
        except OutOfMemoryError:
            return
        self._forget_completed()
        self.blocks[block.address] = block
        self.live.append(block.address)

    def _forget_completed(self) -> None:
        """A release of the cache waits for all other streams by itself."""
        for address in [a for a in self.waiting if not self.blocks[a].pending]:
            self.waiting.remove(address)
            del self.blocks[address]


def _calls(places: int) -> st.SearchStrategy[list[Call]]:
    numbers = st.integers(0, 99)
    malloc = st.tuples(st.just("malloc"), SIZES, st.integers(0, places - 1))
    free = st.tuples(st.just("free"), numbers, st.just(0))
    rare = st.tuples(
        st.sampled_from(("free_in_use", "complete_free", "empty_cache")), numbers, st.just(0)
    )
    return st.lists(st.one_of(malloc, malloc, malloc, free, free, rare), min_size=20, max_size=60)


def jobs(
    *, places: int = 4, versions: Sequence[tuple[int, int]] = ((2, 11),)
) -> st.SearchStrategy[Job]:
    """Jobs under all kinds of settings.

    Args:
        places: how many of the combinations of stream and pool are used.
        versions: torch releases to choose from.
    """
    return st.builds(
        Job,
        settings=st.sampled_from(SETTINGS),
        version=st.sampled_from(versions),
        limit_bytes=st.sampled_from((None, 60 * MIB, 150 * MIB)),
        calls=_calls(places),
    )

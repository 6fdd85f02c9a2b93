"""Random calls of one program to the default pools, with settings and a capacity to match."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from vramscope_analysis.allocator import (
    AllocatorSettings,
    Block,
    CachingAllocator,
    OutOfMemoryError,
)

MIB: Final = 1 << 20
STREAMS: Final = (0, 7, 1 << 40)
VERSIONS: Final = [(2, minor) for minor in range(4, 15)]
COMMON_SIZES: Final = [700, MIB, 12 * MIB, 31 * MIB, 33 * MIB, 60 * MIB]
UNLIMITED: Final = AllocatorSettings.max_split_size_bytes

Call = tuple[str, int, int]
"""(malloc, size, stream), (free, which of the live blocks, 0) or (empty_cache, 0, 0)."""

sizes = st.one_of(
    st.integers(1, 4096),
    st.integers(1, MIB).map(lambda size: -(-size // 512) * 512),
    st.sampled_from([512, 513, MIB, MIB + 1, 2 * MIB, 10 * MIB - 1, 10 * MIB, 20 * MIB]),
    st.integers(1, 3 * MIB),
    st.integers(MIB + 1, 90 * MIB),
)
allocator_settings = st.builds(
    AllocatorSettings,
    roundup_power2_divisions=st.sampled_from([0, 1, 4, 8]).map(lambda divisions: (divisions,) * 16),
    max_split_size_bytes=st.sampled_from([UNLIMITED, UNLIMITED, 32 * MIB]),
    max_non_split_rounding_bytes=st.sampled_from([20 * MIB, 48 * MIB]),
    garbage_collection_threshold=st.sampled_from([0.0, 0.0, 0.3, 0.7]),
    expandable_segments=st.booleans(),
)
capacities = st.one_of(
    st.none(), st.sampled_from([64 * MIB, 100 * MIB + 12345, 256 * MIB, 1024 * MIB])
)

calls = st.lists(
    st.one_of(
        st.tuples(st.just("malloc"), sizes, st.sampled_from(STREAMS)),
        st.tuples(st.just("malloc"), st.sampled_from(COMMON_SIZES), st.just(0)),
        st.tuples(st.just("free"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("free"), st.just(0), st.just(0)),
        st.tuples(st.just("empty_cache"), st.just(0), st.just(0)),
    ),
    min_size=10,
    max_size=80,
)


def run(model: CachingAllocator, done: list[Call], live: list[Block]) -> list[int]:
    """Make the calls; where each request was served, 0 where it was not."""
    served: list[int] = []
    for call, amount, stream in done:
        if call == "malloc":
            try:
                live.append(model.malloc(amount, stream))
                served.append(live[-1].address)
            except OutOfMemoryError:
                served.append(0)
        elif call == "free" and live:
            model.free(live.pop(amount % len(live)))
        elif call == "empty_cache":
            model.empty_cache()
    return served

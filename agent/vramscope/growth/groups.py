"""Which sources hold more and more, told from several looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from vramscope.growth.live_blocks import LiveBlocks

LEAST_RISES: Final = 2
"""So often, from one look to the next, a source must have come to hold more."""
LEAST_GROWN: Final = 0.5
"""Part of what came that must have come beside older blocks, not in their place."""


class Group(Struct):
    """A source that grows.

    Args:
        source: its number.
        bytes, count: live at the last look, of what was not there at the first.
        bytes_at_looks, counts_at_looks: what was live at each look.
        addresses: of the new blocks, those of each time between two looks apart, oldest first.
    """

    source: int
    bytes: int
    count: int
    bytes_at_looks: list[int]
    counts_at_looks: list[int]
    addresses: list[list[int]]


def growing_groups(blocks: LiveBlocks, looks: Sequence[int]) -> list[Group]:
    """Sources that grew in bytes and in count and never shrank, the largest growth first.

    Args:
        blocks: of the last look.
        looks: numbers of those that are compared, the last one among them.
    """
    more = _more_of_a_size(blocks, looks)
    found = {
        source: _group(blocks, source, looks)
        for source in blocks.bytes_at_looks[looks[-1]]
        if not blocks.sources[source].is_old and _grows(blocks, source, looks)
    }
    sizes: dict[int, Counter[int]] = {source: Counter() for source in found}
    for address, block in blocks.blocks.items():
        group = found.get(block.source)
        if group is not None and block.born > looks[0]:
            interval = next(i for i, look in enumerate(looks[1:]) if look >= block.born)
            group.addresses[interval].append(address)
            group.bytes += block.size_bytes
            group.count += 1
            sizes[block.source][block.size_bytes] += 1
    real = [
        group
        for source, group in found.items()
        if group.count and _grown_bytes(sizes[source], more) >= LEAST_GROWN * group.bytes
    ]
    return sorted(real, key=lambda group: -rise(group.bytes_at_looks))


def rise(values: Sequence[int]) -> int:
    """From the first to the last."""
    return values[-1] - values[0]


def _grows(blocks: LiveBlocks, source: int, looks: Sequence[int]) -> bool:
    sizes = [blocks.bytes_at_looks[look].get(source, 0) for look in looks]
    counts = [blocks.counts_at_looks[look].get(source, 0) for look in looks]
    return _rises(sizes) >= LEAST_RISES and _rises(counts) >= LEAST_RISES


def _rises(values: Sequence[int]) -> int:
    """How often the next is more; 0 if ever one is less."""
    steps = [after - before for before, after in pairwise(values)]
    return 0 if any(step < 0 for step in steps) else sum(step > 0 for step in steps)


def _group(blocks: LiveBlocks, source: int, looks: Sequence[int]) -> Group:
    return Group(
        source,
        0,
        0,
        [blocks.bytes_at_looks[look].get(source, 0) for look in looks],
        [blocks.counts_at_looks[look].get(source, 0) for look in looks],
        [[] for _ in looks[1:]],
    )


def _more_of_a_size(blocks: LiveBlocks, looks: Sequence[int]) -> Counter[int]:
    """How many more blocks of each size there are than at the first look, whatever made them.

    A buffer that is full, and whose members are replaced one by one, comes to have more and more
    members from during the recording, and does not grow.
    """
    more = Counter(blocks.sizes_at_looks[looks[-1]])
    more.subtract(blocks.sizes_at_looks[looks[0]])
    return +more


def _grown_bytes(sizes: Counter[int], more: Counter[int]) -> int:
    return sum(size * min(count, more[size]) for size, count in sizes.items())

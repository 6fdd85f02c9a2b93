"""Puts the state that a snapshot shows into an empty model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import gcd
from typing import Any, Final, TypeAlias

from vramscope_analysis.allocator.active_blocks import ActiveBlocks
from vramscope_analysis.allocator.address_space import FirstFitAddresses
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.cached_memory import CachedMemory
from vramscope_analysis.allocator.pool import DEFAULT_POOL_ID, BlockPool
from vramscope_analysis.allocator.segment import ExpandableSegment, Segment
from vramscope_analysis.allocator.segment_entry import BlockEntry, SegmentEntry, read_segments
from vramscope_analysis.allocator.state import AllocatorState

Members: TypeAlias = list[SegmentEntry]
"""What one segment of the model is made of: one plain segment, or all pieces of one range."""

_UNKNOWN_AGE: Final = 1 << 64
"""Comes after every age that is known."""


class Restoration:
    """Fills the empty parts of one model.

    What a snapshot does not say is set as follows. Free blocks are of age 0. What orders equal
    blocks from 2.12 on follows ``registration``, and the addresses where that is not given. Peaks
    and totals are what is current, and no call to the device is counted. A private pool has one
    use. Which streams a waiting block waits for is not known: the caller completes it, or a
    release of the cache. A range begins at ``range_address``, or at the lowest of its pieces, and
    goes as far as nothing else lies in it.
    """

    def __init__(self, state: AllocatorState, cached: CachedMemory, active: ActiveBlocks) -> None:
        self._state = state
        self._cached = cached
        self._active = active
        self._in_use: dict[int, Block] = {}
        self._entries: dict[Block, BlockEntry] = {}

    def fill(self, segments: Iterable[Mapping[str, Any]]) -> dict[int, Block]:
        """Put segments into the model.

        Args:
            segments: in PyTorch's structure, in any order. They may have more keys:
                ``registration`` (orders segments by age, and blocks where their age counts)
                and, if expandable, ``range_address`` and ``page_bytes``.

        Returns:
            The blocks in use, allocated or waiting, by address.

        Raises:
            ValueError: the model is not empty, or the segments contradict each other.
        """
        held_bytes = self._state.reserved_bytes
        if held_bytes:
            raise ValueError(f"expected an empty model, got one that holds {held_bytes} bytes")
        groups = _groups_of(read_segments(segments))
        following = dict(pairwise(sorted(groups)))
        for start in sorted(groups, key=lambda start: _age_of(start, groups[start])):
            members = groups[start]
            if members[0].is_expandable:
                self._add_range(start, following.get(start), members)
            else:
                self._add_plain(members[0])
        self._number_blocks()
        for block, entry in self._entries.items():
            self._set_state(block, entry)
        return self._in_use

    def _add_plain(self, entry: SegmentEntry) -> None:
        state = self._state
        pool = self._pool_of(entry)
        segment = Segment(
            entry.address, entry.size_bytes, entry.stream, pool, next(state.memory_numbers)
        )
        self._cached.device.segments[entry.address] = segment
        self._occupy(entry.address, entry.size_bytes)
        pool.stats.segment.increase(1)
        pool.stats_all.segment.increase(1)
        if entry.size_bytes >= state.settings.max_split_size_bytes:
            state.counters.oversize_segments.increase(1)
        self._add_reserved(pool, entry.size_bytes)
        self._fill_blocks(segment, [entry])

    def _add_range(self, start: int, next_start: int | None, members: Members) -> None:
        state = self._state
        first = members[0]
        pool = self._pool_of(first)
        expandable = self._cached.expandable
        page_bytes = first.page_bytes or expandable.page_bytes_of(pool)
        # The size of large pages is an option that may have changed since.
        page_bytes = gcd(page_bytes, *(size for entry in members for size in _span(entry, start)))
        range_bytes = expandable.range_bytes(page_bytes)
        if next_start is not None:
            # Ranges do not overlap, but the size of the device may not be known.
            range_bytes = min(range_bytes, (next_start - start) // page_bytes * page_bytes)
        range_bytes = max(range_bytes, members[-1].end - start)
        segment = ExpandableSegment(
            start,
            range_bytes,
            first.stream,
            pool,
            next(state.memory_numbers),
            page_bytes=page_bytes,
        )
        expandable.segments[start] = segment
        self._occupy(start, range_bytes)
        for entry in members:
            self._add_reserved(pool, entry.size_bytes)
        self._fill_blocks(segment, members)

    def _fill_blocks(self, segment: Segment, members: Members) -> None:
        """Cut a segment into the blocks of its pieces and what lies unmapped between them."""
        rest = segment.first
        for entry in members:
            if entry.address > rest.address:
                segment.split(rest, entry.address - rest.address).mapped = False
            for block_entry in entry.blocks:
                is_last = block_entry.size_bytes == rest.size_bytes
                block = rest if is_last else segment.split(rest, block_entry.size_bytes)
                block.mapped = True
                self._entries[block] = block_entry
        for block in segment.blocks():
            if not block.mapped:
                segment.pool.unmapped.insert(block)

    def _number_blocks(self) -> None:
        """Number the blocks by age, where that orders them: as told, then by address."""
        numbers = self._state.block_numbers
        if numbers is None:
            return
        ages = {
            block: _UNKNOWN_AGE if entry.registration is None else entry.registration
            for block, entry in self._entries.items()
        }
        for block in sorted(ages, key=lambda block: (ages[block], block.address)):
            block.registration = next(numbers)

    def _set_state(self, block: Block, entry: BlockEntry) -> None:
        pool = block.pool
        size_bytes = block.size_bytes
        block.requested_bytes = entry.requested_bytes
        if entry.state == "inactive":
            pool.insert(block)
            if block.is_split and not block.segment.is_expandable:
                for stats in (pool.stats, pool.stats_all):
                    stats.inactive_split_changed(1, size_bytes)
            return
        self._in_use[block.address] = block
        for stats in (pool.stats, pool.stats_all):
            stats.block_allocated(size_bytes, entry.requested_bytes)
        block.allocated = True
        if size_bytes >= self._state.settings.max_split_size_bytes:
            self._state.counters.oversize_allocations.increase(1)
        if entry.state != "active_allocated":
            self._active.wait_for(block)

    def _pool_of(self, entry: SegmentEntry) -> BlockPool:
        pool_id = entry.pool_id
        pool = self._cached.pool_for(pool_id, entry.stream, is_small=entry.is_small)
        if pool_id != DEFAULT_POOL_ID and pool.owner is not None:
            pool.owner.malloc_count += 1
        return pool

    def _add_reserved(self, pool: BlockPool, size_bytes: int) -> None:
        for stat in self._state.reserved_stats(pool):
            stat.increase(size_bytes)

    def _occupy(self, address: int, size_bytes: int) -> None:
        # A replay's own address space knows where its recording had the segments.
        addresses = self._state.addresses
        if isinstance(addresses, FirstFitAddresses):
            addresses.occupy(address, size_bytes)


def _groups_of(entries: list[SegmentEntry]) -> dict[int, Members]:
    """Plain segments by address, and the pieces of each range by where it begins.

    The pieces of a range follow each other: what has another segment between is two ranges.
    """
    groups: dict[int, Members] = {}
    members: Members = []
    key: tuple[object, ...] = ()
    end = 0
    for entry in entries:
        before, key = key, _range_key(entry)
        if entry.is_expandable and key == before:
            members.append(entry)
        else:
            start = entry.address if entry.range_address is None else entry.range_address
            if start < end:
                raise ValueError(
                    f"expected a range_address of at least {end:#x} for the segment at "
                    f"{entry.address:#x}, got {start:#x}"
                )
            members = groups[start] = [entry]
        end = entry.end
    return groups


def _range_key(entry: SegmentEntry) -> tuple[object, ...]:
    return (
        entry.is_expandable,
        entry.stream,
        entry.pool_id,
        entry.is_small,
        entry.range_address,
    )


def _span(entry: SegmentEntry, start: int) -> tuple[int, int]:
    return entry.address - start, entry.size_bytes


def _age_of(start: int, members: Members) -> tuple[int, int]:
    registration = members[0].registration
    return (_UNKNOWN_AGE if registration is None else registration, start)

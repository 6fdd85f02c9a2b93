"""What holds for an allocator whatever it was asked: recounted from its segments and events."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from vramscope_analysis.allocator import CachingAllocator
from vramscope_analysis.allocator.counters import POOL_KINDS, STAT_NAMES
from vramscope_analysis.allocator.pool import BlockPool

Event = tuple[str, int, int, int, tuple[int, int]]
"""(action, address, size, stream, pool id), as the model reports them."""


def recount(segments: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Every gauge of ``memory_stats()`` that the segments alone determine."""
    gauges: dict[str, dict[str, int]] = {name: dict.fromkeys(POOL_KINDS, 0) for name in STAT_NAMES}

    def count(name: str, kind: str, amount: int) -> None:
        gauges[name]["all"] += amount
        gauges[name][kind] += amount

    for segment in segments:
        kind = f"{segment['segment_type']}_pool"
        count("reserved_bytes", kind, segment["total_size"])
        if not segment["is_expandable"]:
            count("segment", kind, 1)
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                if not segment["is_expandable"] and len(segment["blocks"]) > 1:
                    count("inactive_split", kind, 1)
                    count("inactive_split_bytes", kind, block["size"])
                continue
            count("active", kind, 1)
            count("active_bytes", kind, block["size"])
            count("requested_bytes", kind, block["requested_size"])
            if block["state"] == "active_allocated":
                count("allocation", kind, 1)
                count("allocated_bytes", kind, block["size"])
    return gauges


def check_segments(segments: list[dict[str, Any]]) -> None:
    """Segments and blocks tile their ranges, and no two free neighbours are left."""
    end = -1
    for segment in segments:
        assert segment["address"] >= end, "segments overlap or are not in order"
        end = segment["address"] + segment["total_size"]
        address, before = segment["address"], "none"
        for block in segment["blocks"]:
            assert block["address"] == address, "a gap or an overlap between blocks"
            assert block["size"] > 0
            assert block["size"] % 512 == 0
            assert {block["state"], before} != {"inactive"}, "free neighbours were not joined"
            address += block["size"]
            before = block["state"]
        assert address == end, "blocks do not fill their segment"
        for state, total in (("active_allocated", "allocated_size"), ("", "active_size")):
            assert segment[total] == sum(
                block["size"]
                for block in segment["blocks"]
                if block["state"] != "inactive" and block["state"].startswith(state)
            )


def check_counters(model: CachingAllocator, segments: list[dict[str, Any]]) -> None:
    """Each gauge equals the recount; nobody is above the peak; totals add up."""
    stats = model.memory_stats()
    gauges = recount(segments)
    for name in STAT_NAMES:
        for kind in POOL_KINDS:
            stat = stats[name][kind]
            assert stat["current"] == gauges[name][kind], (name, kind)
            assert stat["peak"] >= stat["current"], (name, kind)
    assert model.reserved_bytes == gauges["reserved_bytes"]["all"]
    assert model.allocated_bytes == gauges["allocated_bytes"]["all"]
    by_pool: dict[tuple[int, int], int] = defaultdict(int)
    for segment in segments:
        by_pool[segment["segment_pool_id"]] += segment["total_size"]
    for pool_id, private in stats.get("reserved_bytes_by_private_pools", {}).items():
        assert private["all"]["current"] == by_pool[pool_id], pool_id
        small, large = private["small_pool"], private["large_pool"]
        assert small["current"] + large["current"] == private["all"]["current"]


def check_free_sets(model: CachingAllocator) -> None:
    """The sets that are searched hold the free blocks and nothing else."""
    free: set[tuple[int, int]] = set()
    for pool in pools_of(model):
        blocks = list(pool.free)
        free |= {(block.address, block.size_bytes) for block in blocks}
        whole = [block for block in blocks if block.prev is None and block.next is None]
        assert set(pool.whole) == set(whole)
        assert pool.whole_bases == sum(block.gc_count_base for block in whole)
        for block in blocks:
            assert block.state == "inactive"
            assert block.mapped
            assert block.pool is pool
        for stream in {block.stream for block in blocks}:
            for unmapped in pool.unmapped.of_stream(stream):
                assert not unmapped.mapped
                assert unmapped.next is None or unmapped.next.mapped, "neighbours were not joined"
    assert free == {
        (block["address"], block["size"])
        for segment in model.segments()
        for block in segment["blocks"]
        if block["state"] == "inactive"
    }


def pools_of(model: CachingAllocator) -> list[BlockPool]:
    """Both halves of the default pool and of every private one."""
    cached = model._cached  # pyright: ignore[reportPrivateUsage]
    private = cached.private.by_id.values()
    return [cached.small, cached.large, *(half for p in private for half in (p.small, p.large))]


class Pieces:
    """Pieces of the device that do not overlap, by address."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self._addresses: list[int] = []

    def add(self, address: int, size_bytes: int) -> None:
        """One more; it must not overlap another."""
        assert not self.within(address, size_bytes), "two pieces overlap"
        self.sizes[address] = size_bytes
        insort(self._addresses, address)

    def remove(self, address: int, size_bytes: int) -> None:
        """One less, of which the size is known."""
        assert self.sizes.pop(address) == size_bytes
        del self._addresses[bisect_left(self._addresses, address)]

    def within(self, address: int, size_bytes: int) -> list[tuple[int, int]]:
        """Address and size of all that overlap a range."""
        first = max(0, bisect_right(self._addresses, address) - 1)
        last = bisect_left(self._addresses, address + size_bytes)
        return [
            (start, self.sizes[start])
            for start in self._addresses[first:last]
            if start + self.sizes[start] > address
        ]

    def cut(self, address: int, size_bytes: int) -> None:
        """Take a range out, which may begin and end within pieces."""
        end = address + size_bytes
        for start, piece_bytes in self.within(address, size_bytes):
            self.remove(start, piece_bytes)
            if start < address:
                self.add(start, address - start)
            if start + piece_bytes > end:
                self.add(end, start + piece_bytes - end)


class EventMemory:
    """The device as the events alone tell it; every event must make sense there."""

    def __init__(self) -> None:
        self.reserved = Pieces()
        self.live = Pieces()
        self.pending = Pieces()

    def apply(self, event: Event) -> None:
        action, address, size_bytes, _stream, _pool_id = event
        if action in ("segment_alloc", "segment_map"):
            self.reserved.add(address, size_bytes)
        elif action == "segment_free":
            self.reserved.remove(address, size_bytes)
            assert not self._in_use(address, size_bytes)
        elif action == "segment_unmap":
            assert self._is_reserved(address, size_bytes), "not mapped"
            assert not self._in_use(address, size_bytes)
            self.reserved.cut(address, size_bytes)
        elif action == "alloc":
            assert self._is_reserved(address, size_bytes), "outside of what is reserved"
            assert not self._in_use(address, size_bytes), "handed out twice"
            self.live.add(address, size_bytes)
        elif action == "free_requested":
            self.live.remove(address, size_bytes)
            self.pending.add(address, size_bytes)
        elif action == "free_completed":
            self.pending.remove(address, size_bytes)
        else:
            assert action == "oom", action

    def reserved_bytes(self) -> int:
        """Bytes of all that is reserved."""
        return sum(self.reserved.sizes.values())

    def _in_use(self, address: int, size_bytes: int) -> bool:
        return any(used.within(address, size_bytes) for used in (self.live, self.pending))

    def _is_reserved(self, address: int, size_bytes: int) -> bool:
        end = address + size_bytes
        return size_bytes == sum(
            min(start + piece_bytes, end) - max(start, address)
            for start, piece_bytes in self.reserved.within(address, size_bytes)
        )

"""What holds whatever the allocator is asked, under any settings and for any release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.allocator_calls import (
    MIB,
    STREAMS,
    UNLIMITED,
    VERSIONS,
    Call,
    allocator_settings,
    calls,
    capacities,
    sizes,
)
from tests.support.allocator_invariants import (
    Event,
    EventMemory,
    check_counters,
    check_free_sets,
    check_segments,
)
from vramscope_analysis.allocator import (
    AllocatorSettings,
    Block,
    CachingAllocator,
    OutOfMemoryError,
)


class AllocatorMachine(RuleBasedStateMachine):
    """Drives one allocator through anything that a program can do, and checks it after each."""

    model: CachingAllocator

    def __init__(self) -> None:
        super().__init__()
        self.live: list[Block] = []
        self.pending: list[Block] = []
        self.scopes: list[tuple[int, int]] = []
        self.pools: list[tuple[int, int]] = []
        self.made_pools = 0
        self.events: list[Event] = []
        self.memory = EventMemory()
        self.peaks: dict[tuple[str, str], int] = {}

    @initialize(
        chosen=allocator_settings,
        capacity_bytes=capacities,
        limit_bytes=st.one_of(st.none(), st.integers(10 * MIB, 200 * MIB)),
        version=st.sampled_from(VERSIONS),
    )
    def start(
        self,
        chosen: AllocatorSettings,
        capacity_bytes: int | None,
        limit_bytes: int | None,
        version: tuple[int, int],
    ) -> None:
        if version < (2, 5) and chosen.expandable_segments:
            # That release raised on an oversize block of an expandable segment.
            chosen = replace(chosen, max_split_size_bytes=UNLIMITED)
        self.model = CachingAllocator(
            capacity_bytes,
            chosen,
            limit_bytes=limit_bytes,
            version=version,
            on_event=self.record,
        )

    def record(
        self, action: str, address: int, size_bytes: int, stream: int, pool_id: tuple[int, int]
    ) -> None:
        self.memory.apply((action, address, size_bytes, stream, pool_id))
        self.events.append((action, address, size_bytes, stream, pool_id))

    # -------------------------------------------------------------------------------- calls

    @rule(wanted=st.lists(st.tuples(sizes, st.sampled_from(STREAMS)), min_size=1, max_size=8))
    def malloc(self, wanted: list[tuple[int, int]]) -> None:
        for size_bytes, stream in wanted:
            self.take(size_bytes, stream)

    @rule(size_bytes=sizes, count=st.integers(2, 9))
    def malloc_alike(self, size_bytes: int, count: int) -> None:
        for _ in range(count):
            self.take(size_bytes, 0)

    @rule(size_bytes=st.sampled_from([1 << 35, 1 << 50, (1 << 60) - 1]))
    def malloc_too_much(self, size_bytes: int) -> None:
        if self.model.allowed_bytes is not None:
            before = self.model.memory_stats()["num_ooms"]
            with pytest.raises(OutOfMemoryError):
                self.model.malloc(size_bytes)
            assert self.model.memory_stats()["num_ooms"] == before + 1
            self.forget_completed()

    @rule()
    def malloc_nothing(self) -> None:
        with pytest.raises(ValueError, match="at least 1 byte"):
            self.model.malloc(0)

    @precondition(lambda self: self.live)
    @rule(data=st.data(), uses=st.sets(st.sampled_from(STREAMS), max_size=1))
    def free(self, data: st.DataObject, uses: set[int]) -> None:
        block = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        for stream in uses:
            self.model.record_stream(block, stream)
        self.model.free(block)
        assert block.pending == bool(uses - {block.stream})
        if block.pending:
            self.pending.append(block)

    @precondition(lambda self: self.live)
    @rule(first=st.integers(0, 3), step=st.integers(1, 8), flush=st.booleans())
    def free_some(self, first: int, step: int, flush: bool) -> None:
        kept = self.live[first::step]
        for block in [block for block in self.live if block not in kept]:
            self.model.free(block)
        self.live = kept
        if flush and not self.scopes:
            self.empty_cache()

    @precondition(lambda self: self.pending and not self.scopes)
    @rule(data=st.data())
    def complete_free(self, data: st.DataObject) -> None:
        block = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
        self.model.complete_free(block)

    @precondition(lambda self: not self.scopes or self.model.version >= (2, 8))
    @rule()
    def empty_cache(self) -> None:
        self.model.empty_cache()
        self.forget_completed()
        if not self.scopes:
            assert [s for s in self.model.segments() if is_returnable(s, self.model.settings)] == []

    @rule(lift=st.booleans(), limit_bytes=st.integers(8 * MIB, 300 * MIB))
    def set_limit(self, lift: bool, limit_bytes: int) -> None:
        self.model.set_limit(None if lift else limit_bytes)

    @rule(expandable=st.booleans(), divisions=st.sampled_from([0, 2, 16]))
    def set_settings(self, expandable: bool, divisions: int) -> None:
        if self.model.settings.max_split_size_bytes < UNLIMITED:
            expandable = self.model.settings.expandable_segments
        self.model.set_settings(
            replace(
                self.model.settings,
                expandable_segments=expandable,
                roundup_power2_divisions=(divisions,) * 16,
            )
        )

    @rule()
    def reset_peaks(self) -> None:
        self.model.reset_peaks()
        self.peaks.clear()

    @precondition(lambda self: len(self.scopes) < 2)
    @rule(is_capture=st.booleans(), one_stream=st.booleans())
    def begin_pool(self, is_capture: bool, one_stream: bool) -> None:
        self.made_pools += 1
        pool_id = (0, self.made_pools)
        streams = STREAMS[:1] if one_stream else None
        self.model.begin_allocate_to_pool(pool_id, is_capture=is_capture, streams=streams)
        self.scopes.append(pool_id)

    @precondition(lambda self: self.scopes)
    @rule()
    def end_pool(self) -> None:
        pool_id = self.scopes.pop()
        self.model.end_allocate_to_pool(pool_id)
        self.pools.append(pool_id)

    @precondition(lambda self: self.pools)
    @rule()
    def release_pool(self) -> None:
        self.model.release_pool(self.pools.pop())

    # --------------------------------------------------------------------------- invariants

    @invariant()
    def everything_adds_up(self) -> None:
        segments = self.model.segments()
        check_segments(segments)
        check_counters(self.model, segments)
        check_free_sets(self.model)
        assert self.memory.reserved_bytes() == self.model.reserved_bytes

    @invariant()
    def live_blocks_are_where_they_were_handed_out(self) -> None:
        self.forget_completed()
        states = {
            (block["address"], block["size"]): block["state"]
            for segment in self.model.segments()
            for block in segment["blocks"]
        }
        for block in self.live:
            assert states[block.address, block.size_bytes] == "active_allocated"
        for block in self.pending:
            assert states[block.address, block.size_bytes] == "active_pending_free"
        live = {block.address: block.requested_bytes for block in self.live}
        assert self.memory.live.sizes == live

    @invariant()
    def no_more_is_reserved_than_there_is(self) -> None:
        capacity = self.model.capacity_bytes
        assert capacity is None or self.model.reserved_bytes <= capacity
        grown = any(event[0] in ("segment_alloc", "segment_map") for event in self.events)
        if grown and self.model.allowed_bytes is not None and self.model.limit_bytes is not None:
            # The limit is checked against whole segments, then pages are mapped: one may be over.
            page_bytes = self.model.settings.large_segment_bytes
            slack_bytes = page_bytes if self.model.settings.expandable_segments else 0
            assert self.model.reserved_bytes <= self.model.allowed_bytes + slack_bytes
        self.events.clear()

    @invariant()
    def peaks_only_rise(self) -> None:
        stats = self.model.memory_stats()
        for name in ("reserved_bytes", "allocated_bytes", "active", "inactive_split_bytes"):
            for kind, stat in stats[name].items():
                assert stat["peak"] >= self.peaks.get((name, kind), 0)
                assert stat["allocated"] - stat["freed"] == stat["current"]
                self.peaks[name, kind] = stat["peak"]

    # ------------------------------------------------------------------------------ helpers

    def take(self, size_bytes: int, stream: int) -> None:
        before = self.model.memory_stats()
        try:
            block = self.model.malloc(size_bytes, stream)
        except OutOfMemoryError:
            stats = self.model.memory_stats()
            assert stats["num_ooms"] == before["num_ooms"] + 1
            assert stats["allocated_bytes"]["all"] == before["allocated_bytes"]["all"]
        else:
            assert block.size_bytes >= size_bytes
            assert block.requested_bytes == size_bytes
            assert block.stream == stream
            self.live.append(block)
        self.forget_completed()

    def forget_completed(self) -> None:
        self.pending = [block for block in self.pending if block.pending]


def is_returnable(segment: dict[str, Any], chosen: AllocatorSettings) -> bool:
    """Whether a segment of the default pool could go back to the device, in whole or in part."""
    if segment["segment_pool_id"] != (0, 0):
        return False
    if not segment["is_expandable"]:
        return not segment["active_size"]
    page_bytes = 2 * MIB if segment["segment_type"] == "small" else chosen.large_segment_bytes
    free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
    return max(free, default=0) >= 2 * page_bytes  # a whole page lies within, wherever it starts


def test_no_sequence_of_calls_breaks_the_accounts() -> None:
    run_state_machine_as_test(
        AllocatorMachine,
        settings=settings(
            max_examples=100,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


def best_fit(model: CachingAllocator, size_bytes: int, stream: int) -> int | None:
    """Address of the free block that a search through all segments finds; no tie-break needed."""
    rounded = max(512, -(-size_bytes // 512) * 512)
    kind = "small" if rounded <= MIB else "large"
    limit = model.settings.max_split_size_bytes
    fitting = [
        (block["size"], block["address"])
        for segment in model.segments()
        if (segment["segment_type"], segment["stream"]) == (kind, stream)
        for block in segment["blocks"]
        if block["state"] == "inactive" and block["size"] >= rounded
    ]
    if not fitting:
        return None
    found_bytes, address = min(fitting)
    if rounded < limit:
        return address if found_bytes < limit else None
    rounding = model.settings.max_non_split_rounding_bytes
    return address if found_bytes < rounded + rounding else None


@given(
    done=calls,
    capacity_bytes=st.sampled_from([None, 128 * MIB, 1024 * MIB]),
    version=st.sampled_from([version for version in VERSIONS if version <= (2, 11)]),
    max_split_size_bytes=st.sampled_from([32 * MIB, UNLIMITED]),
)
@settings(deadline=None, max_examples=150)
def test_the_smallest_free_block_at_the_lowest_address_is_taken(
    done: list[Call],
    capacity_bytes: int | None,
    version: tuple[int, int],
    max_split_size_bytes: int,
) -> None:
    chosen = AllocatorSettings(max_split_size_bytes=max_split_size_bytes)
    model = CachingAllocator(capacity_bytes, chosen, version=version)
    live: list[Block] = []
    for call, amount, stream in done:
        if call == "malloc":
            expected = best_fit(model, amount, stream)
            segments = model.memory_stats()["num_device_alloc"]
            try:
                block = model.malloc(amount, stream)
            except OutOfMemoryError:
                assert expected is None
                continue
            live.append(block)
            left_bytes = block.size_bytes - max(512, -(-amount // 512) * 512)
            if block.pool.is_small or block.size_bytes < max_split_size_bytes:
                assert left_bytes <= (0 if block.pool.is_small else MIB), "should have been split"
            assert expected in (None, block.address)
            assert (expected is None) == (model.memory_stats()["num_device_alloc"] == segments + 1)
        elif call == "free" and live:
            model.free(live.pop(amount % len(live)))
        elif call == "empty_cache":
            model.empty_cache()

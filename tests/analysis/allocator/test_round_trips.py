"""An allocator's own events and segments are enough to do the same again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.allocator_calls import (
    MIB,
    VERSIONS,
    Call,
    allocator_settings,
    calls,
    capacities,
    run,
)
from tests.support.allocator_invariants import Event, check_counters, check_free_sets
from tests.support.allocator_traces import flatten
from tests.support.made_recordings import comparable, recording_of
from vramscope_analysis.allocator import AllocatorSettings, Block, CachingAllocator
from vramscope_analysis.allocator.events import PoolId
from vramscope_analysis.replay import replay_recorded


@given(
    done=calls,
    chosen=allocator_settings,
    capacity_bytes=capacities,
    version=st.sampled_from([(2, 4), (2, 9), (2, 11), (2, 12), (2, 14)]),
)
@settings(deadline=None, max_examples=60)
def test_its_own_events_replay_to_the_same_events(
    done: list[Call],
    chosen: AllocatorSettings,
    capacity_bytes: int | None,
    version: tuple[int, int],
) -> None:
    if capacity_bytes is not None:
        # Whether memory was released for a request, or before it, such a trace does not tell.
        done = [call for call in done if call[0] != "empty_cache"]
        chosen = replace(chosen, expandable_segments=False)
    events: list[Event] = []

    def note(action: str, address: int, size_bytes: int, stream: int, pool_id: PoolId) -> None:
        events.append((action, address, size_bytes, stream, pool_id))

    model = CachingAllocator(capacity_bytes, chosen, version=version, on_event=note)
    run(model, done, [])
    if not events:
        return
    recording = recording_of(events, model.segments(), chosen, version=version)

    report = replay_recorded(recording, capacity_bytes=capacity_bytes)

    assert report.is_exact, report.first_mismatches
    assert report.segment_events == sum(event[0].startswith("segment_") for event in events)
    replayed, real = flatten(report.counters), flatten(model.memory_stats())
    if capacity_bytes is None:
        # Emptying a cache that holds nothing leaves no trace, and what is released right before
        # memory is taken may as well have been released for it.
        for unsure in ("num_sync_all_streams", "num_alloc_retries"):
            real[unsure] = replayed[unsure]
    assert replayed == real


class NextAddresses:
    """Never places two things at the same address, so that two allocators can agree on them."""

    def __init__(self, start: int) -> None:
        self.start = start

    def reserve(self, size_bytes: int) -> int:
        address = self.start
        self.start += -(-size_bytes // (2 * MIB)) * 2 * MIB
        return address

    def release(self, address: int, size_bytes: int) -> None:
        """Not used again."""

    def reserve_range(self, size_bytes: int) -> int:
        return self.reserve(size_bytes)

    def release_range(self, address: int, size_bytes: int) -> None:
        """Not used again."""


@given(
    before=calls,
    after=calls,
    chosen=allocator_settings,
    capacity_bytes=capacities,
    version=st.sampled_from([version for version in VERSIONS if version <= (2, 11)]),
)
@settings(deadline=None, max_examples=80)
def test_a_restored_allocator_goes_on_alike(
    before: list[Call],
    after: list[Call],
    chosen: AllocatorSettings,
    capacity_bytes: int | None,
    version: tuple[int, int],
) -> None:
    if chosen.expandable_segments:
        # Where a range begins, and that one exists with nothing in it, segments do not tell.
        before = [call for call in before if call[0] != "empty_cache"]
        capacity_bytes = None
    addresses = NextAddresses(1 << 44)
    model = CachingAllocator(capacity_bytes, chosen, version=version, addresses=addresses)
    live: list[Block] = []
    run(model, before, live)
    other = CachingAllocator(
        capacity_bytes, chosen, version=version, addresses=NextAddresses(addresses.start)
    )

    found = other.restore(model.segments())

    assert comparable(other.segments()) == comparable(model.segments())
    assert {block.address for block in live} == set(found)
    check_counters(other, other.segments())
    check_free_sets(other)
    restored = [found[block.address] for block in live]
    assert run(other, after, restored) == run(model, after, live)
    assert comparable(other.segments()) == comparable(model.segments())

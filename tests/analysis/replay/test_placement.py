from __future__ import annotations

from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.replay.placement import SYNTHETIC_BASE, RecordedAddresses


def job() -> RecordedJob:
    job = RecordedJob()
    job.malloc(12 * MIB)
    job.malloc(40 * MIB)
    return job


def test_segments_go_where_they_were() -> None:
    events = job().recording().events
    addresses = RecordedAddresses(events)

    assert addresses.next_event == 0
    addresses.expect_until(1)
    assert addresses.reserve(12 * MIB) == events.addresses[0]
    assert addresses.expected == [("segment_alloc", int(events.addresses[0]), 12 * MIB, 0)]
    addresses.expect_nothing()
    assert addresses.next_event == 2
    addresses.expect_until(3)
    assert addresses.reserve(40 * MIB) == events.addresses[2]
    assert addresses.next_event == len(events)


def test_what_was_not_recorded_goes_elsewhere() -> None:
    addresses = RecordedAddresses(job().recording().events)

    early = addresses.reserve(12 * MIB)
    addresses.expect_until(1)
    other_size = addresses.reserve(14 * MIB)
    addresses.reserve(12 * MIB)
    second = addresses.reserve(12 * MIB)

    assert min(early, other_size, second) >= SYNTHETIC_BASE
    assert len({early, other_size, second}) == 3
    addresses.release(early, 12 * MIB)
    assert addresses.reserve(12 * MIB) == early


def test_no_address_is_given_twice() -> None:
    events = job().recording().events
    addresses = RecordedAddresses(events, held=[{"address": events.addresses[0]}])

    addresses.expect_until(1)

    assert addresses.reserve(12 * MIB) >= SYNTHETIC_BASE
    addresses.release(int(events.addresses[0]), 12 * MIB)
    assert addresses.reserve(12 * MIB) == events.addresses[0]


def test_a_range_begins_at_its_first_page() -> None:
    recorded = RecordedJob(AllocatorSettings(expandable_segments=True))
    recorded.malloc(12 * MIB)
    events = recorded.recording().events
    addresses = RecordedAddresses(events)
    addresses.expect_until(1)

    first = addresses.reserve_range(1 << 40)

    assert first == events.addresses[0]
    assert addresses.reserve_range(1 << 40) >= SYNTHETIC_BASE
    addresses.release_range(first, 1 << 40)
    assert addresses.reserve_range(1 << 40) == first


def test_a_range_that_a_failed_request_made_begins_where_pages_are_mapped_later() -> None:
    recorded = RecordedJob(AllocatorSettings(expandable_segments=True))
    recorded.malloc(12 * MIB)
    recorded.malloc(12 * MIB, 64)
    events = recorded.recording().events
    addresses = RecordedAddresses(events)
    addresses.expect_until(1)
    addresses.reserve_range(1 << 40)
    addresses.expect_nothing()

    assert addresses.reserve_range(1 << 40) == events.addresses[2]
    assert addresses.reserve_range(1 << 40) >= SYNTHETIC_BASE


def test_a_range_of_a_failed_request_is_not_that_of_another_kind() -> None:
    recorded = RecordedJob(AllocatorSettings(expandable_segments=True))
    for size_bytes, stream in ((512, 0), (12 * MIB, 64), (512, 64), (12 * MIB, 0)):
        recorded.malloc(size_bytes, stream)
    events = recorded.recording().events
    addresses = RecordedAddresses(events)

    addresses.expect_for(12 * MIB, 0)
    assert addresses.reserve_range(1 << 40) == events.addresses[6]
    addresses.expect_for(512, 64)
    assert addresses.reserve_range(1 << 40) == events.addresses[4]
    assert addresses.reserve_range(1 << 40) >= SYNTHETIC_BASE


def test_entries_before_the_start_are_left_out() -> None:
    events = job().recording().events

    addresses = RecordedAddresses(events, start=2)

    assert addresses.next_event == 2


def expandable_job() -> RecordedJob:
    job = RecordedJob(AllocatorSettings(expandable_segments=True))
    for _page in range(3):
        job.malloc(20 * MIB)
    return job


def test_pages_behind_a_range_begin_no_other() -> None:
    events = expandable_job().recording().events
    addresses = RecordedAddresses(events)
    addresses.expect_until(1)
    addresses.reserve_range(1 << 40)
    addresses.expect_nothing()

    addresses.expect_until(3)
    addresses.expect_nothing()
    addresses.expect_until(5)

    ((_action, third_page, _size, _stream),) = addresses.expected
    assert third_page == events.addresses[0] + 40 * MIB
    assert addresses.reserve_range(1 << 40) >= SYNTHETIC_BASE
    addresses.release_range(int(events.addresses[0]), 1 << 40)
    assert addresses.reserve_range(1 << 40) == third_page


def test_ranges_can_be_kept_apart_from_the_recorded_ones() -> None:
    addresses = RecordedAddresses(expandable_job().recording().events, places_ranges=False)

    addresses.expect_until(1)

    assert addresses.reserve_range(1 << 40) >= SYNTHETIC_BASE

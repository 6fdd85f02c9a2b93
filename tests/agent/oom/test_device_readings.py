from __future__ import annotations

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import install_fake_torch, nested_stats
from tests.support.made_segments import segment
from vramscope.oom import device_readings
from vramscope.oom.device_readings import DeviceReadings

OTHER = 1


@pytest.fixture
def device() -> FakeDevice:
    device = FakeDevice()
    device.stats = nested_stats(allocated_bytes=7)
    device.segment_list = [segment(0, "a2")]
    return device


def test_of_the_watched_device_the_device_is_asked(device: FakeDevice) -> None:
    readings = DeviceReadings(device, emulated=True)
    assert readings.counters(0)["allocated_bytes.all.current"] == 7
    assert readings.segments(0, {}) == (device.segment_list, None)
    assert readings.storage(0) == device.storage
    assert (readings.total_bytes(0), readings.limit_bytes(0)) == (1000, 1000)
    assert readings.name(0) == "fake"


def test_what_must_not_be_asked_for_is_not(device: FakeDevice) -> None:
    device.no_segments_because = "a pool allocates through Python code"
    readings = DeviceReadings(device, emulated=True)
    assert readings.segments(0, {}) == ([], "a pool allocates through Python code")


def test_too_many_blocks_are_not_listed(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_readings, "MAX_BLOCKS", 10)
    readings = DeviceReadings(device, emulated=True)
    counters = {"active.all.current": 6, "inactive_split.all.current": 5}
    assert readings.segments(0, counters) == ([], "11 blocks are too many to list in time")


def test_without_counters_there_are_none(device: FakeDevice) -> None:
    device.stats = None
    assert DeviceReadings(device, emulated=False).counters(0) == {}


def test_another_device_is_asked_for_at_pytorch(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = install_fake_torch(monkeypatch, device_count=2)
    torch.stats[OTHER] = nested_stats(allocated_bytes=9)
    torch.segments = [segment(0, "a2"), segment(1 << 30, "a4", device=OTHER)]
    readings = DeviceReadings(device, emulated=False)
    assert readings.counters(OTHER)["allocated_bytes.all.current"] == 9
    assert readings.segments(OTHER, {}) == ([torch.segments[1]], None)
    assert readings.storage(OTHER) != device.storage
    assert (readings.total_bytes(OTHER), readings.limit_bytes(OTHER)) == (None, None)
    assert readings.name(OTHER) == ""
    torch.backend = "cudaMallocAsync"
    assert readings.segments(OTHER, {})[0] == []

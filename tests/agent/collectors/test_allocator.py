"""Counters under PyTorch's own names, for every shape that PyTorch gives them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from vramscope.collectors.allocator import (
    ALL_FIELDS,
    DEFAULT_KEYS,
    AllocatorCounters,
    Layout,
    StatsPoller,
    flatten,
)
from vramscope.notices import Notices
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import DeviceInfo

VERSIONS = [(2, minor) for minor in range(4, 15)]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_default_counter_exists_in_every_version(version: tuple[int, int]) -> None:
    layout = Layout(DEFAULT_KEYS)
    assert sorted(layout.keys) == sorted(DEFAULT_KEYS)
    assert UNKNOWN not in layout.values(nested_stats(version))


def test_values_stand_under_their_names() -> None:
    stats = nested_stats(allocated_bytes=512, reserved_bytes=2048, num_ooms=3)
    layout = Layout(DEFAULT_KEYS)
    values = dict(zip(layout.keys, layout.values(stats), strict=True))
    assert values["allocated_bytes.all.current"] == 512
    assert values["reserved_bytes.all.peak"] == 2048
    assert values["num_ooms"] == 3
    assert values["segment.all.current"] == 0


def test_there_are_122_counters_up_to_2_11() -> None:
    assert len(flatten(nested_stats((2, 4)))) == 122
    assert len(flatten(nested_stats((2, 12)))) == 123


def test_private_pools_are_flattened_as_pytorch_does() -> None:
    flat = flatten(nested_stats((2, 13)))
    assert flat["reserved_bytes_by_private_pools.0_1.current"] == 4096
    assert "reserved_bytes_by_private_pools" not in str(
        flatten(nested_stats((2, 13)), per_pool=False)
    )


@pytest.mark.torch
def test_flat_keys_are_those_of_torch_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    stats = nested_stats((2, 13), allocated_bytes=7)
    monkeypatch.setattr(torch.cuda.memory, "memory_stats_as_nested_dict", lambda device: stats)
    monkeypatch.setattr(torch.cuda.memory, "is_initialized", lambda: True, raising=False)
    assert flatten(stats) == dict(torch.cuda.memory.memory_stats(0))


def test_an_unknown_counter_is_unknown_and_not_zero() -> None:
    stats = nested_stats()
    del stats["active_bytes"]
    layout = Layout(("active_bytes.all.current", "num_ooms", "no.such.counter", "num_ooms.all"))
    values = dict(zip(layout.keys, layout.values(stats), strict=True))
    assert values == {
        "active_bytes.all.current": UNKNOWN,
        "num_ooms": 0,
        "no.such.counter": UNKNOWN,
        "num_ooms.all": UNKNOWN,
    }


@pytest.mark.parametrize("stats", [None, {}])
def test_without_counters_everything_is_unknown(stats: Any) -> None:
    layout = Layout(DEFAULT_KEYS)
    assert layout.values(stats) == [UNKNOWN] * len(DEFAULT_KEYS)


def test_all_grows_once_from_the_default_set_when_the_allocator_is_up() -> None:
    counters = AllocatorCounters(ALL_FIELDS)
    before, _ = counters.read(None)
    assert sorted(before.keys) == sorted(DEFAULT_KEYS)
    layout, values = counters.read(nested_stats((2, 11)))
    assert len(layout.keys) == 122
    assert UNKNOWN not in values
    assert counters.read(None)[0] is layout


def test_named_counters_are_streamed_alone() -> None:
    counters = AllocatorCounters(("segment.large_pool.current", "num_ooms"))
    layout, values = counters.read(nested_stats(segment=4))
    assert dict(zip(layout.keys, values, strict=True)) == {
        "segment.large_pool.current": 4,
        "num_ooms": 0,
    }
    assert [field.code for field in layout.fields] == ["q", "q"]


def test_fields_carry_their_units() -> None:
    units = {field.name: field.unit for field in Layout(DEFAULT_KEYS).fields}
    assert units["allocated_bytes.all.current"] == "B"
    assert units["num_ooms"] == ""


def test_a_slow_poll_is_followed_by_a_pause() -> None:
    clock, device, notices = FakeClock(), FakeDevice(), Notices()
    took_s = [0.001, 0.02, 0.001, 0.001]

    class SlowDevice(FakeDevice):
        def memory_stats(self) -> Any:
            clock.advance(took_s.pop(0))
            return device.stats

    poller = StatsPoller(SlowDevice(), clock, notices)
    assert poller.poll() is not None
    assert poller.poll() is not None
    assert "20 ms" in notices.texts()[0]
    clock.advance(0.5)
    assert poller.poll() is None
    assert len(took_s) == 2, "the device must not be asked during the pause"
    clock.advance(0.6)
    assert poller.poll() is not None
    assert notices.texts() == []


def test_a_slow_poll_of_an_emulated_device_is_followed_by_the_next() -> None:
    clock = FakeClock()

    class SlowDevice(FakeDevice):
        @property
        def info(self) -> DeviceInfo:
            return DeviceInfo(0, "emulated", emulated=True)

        def memory_stats(self) -> Any:
            clock.advance(0.02)
            return nested_stats()

    poller = StatsPoller(SlowDevice(), clock, Notices())
    assert poller.poll() is not None
    assert poller.poll() is not None

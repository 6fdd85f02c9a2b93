"""What is measured before and after a command; what is not known is null."""

from __future__ import annotations

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from vramscope.commands.measures import fall, measure
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.errors import CONFLICT, VramscopeError


def test_it_measures_the_allocator_and_the_device() -> None:
    device = FakeDevice()
    device.stats = nested_stats(reserved_bytes=20, allocated_bytes=6, active_bytes=7)
    assert measure(device) == {
        "reserved_bytes": 20,
        "allocated_bytes": 6,
        "active_bytes": 7,
        "inactive_split_bytes": 0,
        "device_free_bytes": 600,
    }


def test_what_the_driver_does_not_say_is_null() -> None:
    device = FakeDevice()
    device.memory.free_bytes = UNKNOWN
    assert measure(device)["device_free_bytes"] is None


def test_without_counters_it_says_why() -> None:
    device = FakeDevice()
    device.stats = None
    with pytest.raises(VramscopeError, match="this process has not used the device") as error:
        measure(device)
    assert error.value.code == CONFLICT


def test_a_fall_is_a_difference_or_unknown() -> None:
    assert fall({"a": 5}, {"a": 2}, "a") == 3
    assert fall({"a": None}, {"a": 2}, "a") is None
    assert fall({"a": 5}, {"a": None}, "a") is None

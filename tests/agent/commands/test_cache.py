"""Receipts tell what was measured, and a dry run changes nothing."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from vramscope.commands.cache import cache_handlers
from vramscope.commands.call import Call
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.commands import Receipt

MIB = 1 << 20


@pytest.fixture
def device() -> FakeDevice:
    device = FakeDevice()
    device.stats = nested_stats(
        reserved_bytes=20 * MIB, allocated_bytes=6 * MIB, active_bytes=7 * MIB
    )
    device.memory.free_bytes = 100 * MIB
    device.segment_list = [
        {"total_size": 12 * MIB, "blocks": [{"size": 12 * MIB, "state": "inactive"}]},
        {
            "total_size": 8 * MIB,
            "blocks": [
                {"size": 6 * MIB, "state": "active_allocated"},
                {"size": 2 * MIB, "state": "inactive"},
            ],
        },
    ]
    return device


def run(device: FakeDevice, name: str, *, dry_run: bool) -> Receipt:
    receipt = cache_handlers(device)[name](Call(dry_run=dry_run))
    assert isinstance(receipt, Receipt)
    return receipt


def test_empty_cache_reports_what_was_measured_and_not_what_was_planned(
    device: FakeDevice,
) -> None:
    device.stats_after_empty_cache = nested_stats(reserved_bytes=9 * MIB, allocated_bytes=6 * MIB)
    receipt = run(device, "empty_cache", dry_run=False)
    assert device.calls == ["empty_cache"]
    assert receipt.state == "done"
    assert receipt.before == {
        "reserved_bytes": 20 * MIB,
        "allocated_bytes": 6 * MIB,
        "active_bytes": 7 * MIB,
        "inactive_split_bytes": 0,
        "device_free_bytes": 100 * MIB,
    }
    assert receipt.after["reserved_bytes"] == 9 * MIB
    assert receipt.returned_bytes == 11 * MIB
    assert receipt.message == "Returned 11 MiB to the device. 2 MiB stayed stranded."


def test_a_dry_run_promises_what_the_segments_say_and_touches_nothing(
    device: FakeDevice,
) -> None:
    receipt = run(device, "empty_cache", dry_run=True)
    assert device.calls == []
    assert receipt.returned_bytes == 12 * MIB
    assert receipt.after["reserved_bytes"] == 8 * MIB
    assert receipt.after["device_free_bytes"] == 112 * MIB
    assert receipt.result == {
        "returnable_bytes": 12 * MIB,
        "returnable_segments": 1,
        "stranded_bytes": 2 * MIB,
        "private_pool_bytes": 0,
        "segments": 2,
    }
    assert receipt.message == ("Would return 12 MiB in 1 of 2 segments; 2 MiB would stay stranded.")


def test_garbage_is_collected_before_the_cache_is_emptied(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def collect() -> int:
        device.calls.append("collect")
        return 5

    monkeypatch.setattr(gc, "collect", collect)
    receipt = run(device, "empty_cache+gc_collect", dry_run=False)
    assert device.calls == ["collect", "empty_cache"]
    assert "5 unreachable objects collected" in receipt.message


def test_a_dry_run_of_both_does_not_guess_what_garbage_holds(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("a dry run changes nothing"))
    receipt = run(device, "empty_cache+gc_collect", dry_run=True)
    assert receipt.returned_bytes == 12 * MIB
    assert "not known in advance" in receipt.message


def test_gc_collect_tells_what_it_freed(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def collect() -> int:
        device.stats = nested_stats(reserved_bytes=20 * MIB, allocated_bytes=4 * MIB)
        return 17

    monkeypatch.setattr(gc, "collect", collect)
    receipt = run(device, "gc_collect", dry_run=False)
    assert receipt.result == {"collected": 17, "freed_bytes": 2 * MIB}
    assert receipt.returned_bytes == 0
    assert receipt.message == (
        "Collected 17 unreachable objects; allocated fell by 2 MiB, which stays cached."
    )


def test_gc_collect_works_without_a_device(device: FakeDevice) -> None:
    device.stats = None
    receipt = run(device, "gc_collect", dry_run=False)
    assert receipt.state == "done"
    assert receipt.returned_bytes is None
    assert receipt.before == {}


def test_what_the_driver_does_not_tell_is_null(device: FakeDevice) -> None:
    device.memory.free_bytes = UNKNOWN
    for dry_run in (True, False):
        receipt = run(device, "empty_cache", dry_run=dry_run)
        assert receipt.before["device_free_bytes"] is None
        assert receipt.after["device_free_bytes"] is None


def test_a_counter_that_is_missing_makes_the_result_unknown(device: FakeDevice) -> None:
    stats: Any = nested_stats()
    del stats["reserved_bytes"]
    device.stats = stats
    receipt = run(device, "empty_cache", dry_run=False)
    assert receipt.returned_bytes is None
    assert receipt.message.startswith("Returned an unknown amount")

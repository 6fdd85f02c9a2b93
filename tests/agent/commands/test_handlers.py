"""Receipts tell what was measured, and a dry run changes nothing."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from vramscope.commands.handlers import CommandHandlers
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.commands import COMMANDS
from vramscope_protocol.errors import VramscopeError

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


def test_every_declared_command_can_be_run(device: FakeDevice) -> None:
    assert set(CommandHandlers(device).names) == set(COMMANDS)


def test_empty_cache_reports_what_was_measured_and_not_what_was_planned(
    device: FakeDevice,
) -> None:
    device.stats_after_empty_cache = nested_stats(reserved_bytes=9 * MIB, allocated_bytes=6 * MIB)
    receipt = CommandHandlers(device).run("empty_cache", dry_run=False)
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
    assert receipt.took_s is not None
    assert receipt.took_s >= 0


def test_a_dry_run_promises_what_the_segments_say_and_touches_nothing(
    device: FakeDevice,
) -> None:
    receipt = CommandHandlers(device).run("empty_cache", dry_run=True)
    assert device.calls == []
    assert receipt.dry_run
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
    receipt = CommandHandlers(device).run("empty_cache+gc_collect", dry_run=False)
    assert device.calls == ["collect", "empty_cache"]
    assert "5 unreachable objects collected" in receipt.message


def test_a_dry_run_of_both_does_not_guess_what_garbage_holds(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("a dry run changes nothing"))
    receipt = CommandHandlers(device).run("empty_cache+gc_collect", dry_run=True)
    assert receipt.returned_bytes == 12 * MIB
    assert "not known in advance" in receipt.message


def test_gc_collect_tells_what_it_freed(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def collect() -> int:
        device.stats = nested_stats(reserved_bytes=20 * MIB, allocated_bytes=4 * MIB)
        return 17

    monkeypatch.setattr(gc, "collect", collect)
    receipt = CommandHandlers(device).run("gc_collect", dry_run=False)
    assert receipt.result == {"collected": 17, "freed_bytes": 2 * MIB}
    assert receipt.returned_bytes == 0
    assert receipt.message == (
        "Collected 17 unreachable objects; allocated fell by 2 MiB, which stays cached."
    )


def test_gc_collect_works_without_a_device(device: FakeDevice) -> None:
    device.stats = None
    receipt = CommandHandlers(device).run("gc_collect", dry_run=False)
    assert receipt.state == "done"
    assert receipt.returned_bytes is None
    assert receipt.before == {}


def test_reading_commands_answer_with_text_and_data(device: FakeDevice) -> None:
    handlers = CommandHandlers(device)
    assert handlers.run("memory_summary", dry_run=False).result == "a summary"
    counters = handlers.run("stats", dry_run=False).result
    assert len(counters) == 122
    assert counters["reserved_bytes.all.current"] == 20 * MIB


def test_reset_peaks_resets(device: FakeDevice) -> None:
    receipt = CommandHandlers(device).run("reset_peaks", dry_run=False)
    assert device.calls == ["reset_peaks"]
    assert receipt.state == "done"


@pytest.mark.parametrize(
    "name", ["empty_cache", "empty_cache+gc_collect", "memory_summary", "stats", "reset_peaks"]
)
def test_without_counters_the_answer_says_why(device: FakeDevice, name: str) -> None:
    device.stats = None
    with pytest.raises(VramscopeError, match="this process has not used the device"):
        CommandHandlers(device).run(name, dry_run=False)
    assert device.calls == []


def test_what_the_driver_does_not_tell_is_null(device: FakeDevice) -> None:
    device.memory.free_bytes = UNKNOWN
    for dry_run in (True, False):
        receipt = CommandHandlers(device).run("empty_cache", dry_run=dry_run)
        assert receipt.before["device_free_bytes"] is None
        assert receipt.after["device_free_bytes"] is None


def test_a_counter_that_is_missing_makes_the_result_unknown(device: FakeDevice) -> None:
    stats: Any = nested_stats()
    del stats["reserved_bytes"]
    device.stats = stats
    receipt = CommandHandlers(device).run("empty_cache", dry_run=False)
    assert receipt.returned_bytes is None
    assert receipt.message.startswith("Returned an unknown amount")

"""Receipts tell what was measured, and a dry run changes nothing."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import install_fake_torch, nested_stats
from vramscope.commands.cache import cache_handlers
from vramscope.commands.call import Call
from vramscope.commands.stranding import ELSE
from vramscope.tensors.category import PARAMETERS
from vramscope.tensors.owners import Owned
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
    assert receipt.message == (
        "Returned 11 MiB to the device; 2 MiB stayed stranded in 1 split segment, held by tensors "
        "that are no parameter, gradient, optimizer state or buffer."
    )
    assert receipt.result["stranded_bytes"] == receipt.result["held_by"][0]["bytes"] == 2 * MIB


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
        "stranded_segments": 1,
        "private_pool_bytes": 0,
        "segments": 2,
        "held_by": [{"what": ELSE, "bytes": 2 * MIB, "segments": 1}],
    }
    assert receipt.message == (
        "Would return 12 MiB of 14 MiB cached; 2 MiB would stay stranded in 1 split segment, held "
        f"by {ELSE}."
    )


def test_the_holders_are_named_by_line_and_counted_only_where_there_is_none(
    device: FakeDevice,
) -> None:
    frames = [{"filename": "/home/me/train.py", "line": 31, "name": "keep"}]
    device.segment_list[1]["blocks"][0]["frames"] = frames
    call = Call(dry_run=True)
    receipt = cache_handlers(device, lambda: pytest.fail("counted"))["empty_cache"](call)
    assert isinstance(receipt, Receipt)
    assert receipt.result["held_by"][0]["what"] == "/home/me/train.py:31 keep"
    assert receipt.message.endswith("1 split segment, held by /home/me/train.py:31 keep.")
    del device.segment_list[1]["blocks"][0]["frames"]
    device.segment_list[1]["address"] = 4096
    owned = [Owned(4096, 6 * MIB, PARAMETERS, "encoder.weight")]
    receipt = cache_handlers(device, lambda: owned)["empty_cache"](call)
    assert isinstance(receipt, Receipt)
    assert receipt.result["held_by"][0]["what"] == "parameters of encoder"


def test_tensors_are_counted_once_however_many_blocks_have_no_stack(device: FakeDevice) -> None:
    device.segment_list += [device.segment_list[1]] * 3
    counts: list[int] = []

    def owned() -> list[Owned]:
        counts.append(1)
        return []

    cache_handlers(device, owned)["empty_cache"](Call(dry_run=True))
    assert counts == [1]


def test_nothing_is_counted_where_nothing_is_stranded(device: FakeDevice) -> None:
    del device.segment_list[1]
    for dry_run in (True, False):
        handler = cache_handlers(device, lambda: pytest.fail("counted"))["empty_cache"]
        receipt = handler(Call(dry_run=dry_run))
        assert isinstance(receipt, Receipt)
        assert "stranded." in receipt.message
        assert receipt.result["held_by"] == []


class MemPool:
    """Stands for PyTorch's."""

    id = (0, 1)


def test_what_private_pools_keep_is_told_as_long_as_they_are_there(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_fake_torch(monkeypatch)
    cuda: Any = sys.modules["torch"].cuda
    cuda.MemPool = MemPool
    pool = MemPool()
    device.segment_list[0]["segment_pool_id"] = pool.id
    receipt = run(device, "empty_cache", dry_run=True)
    assert receipt.message.startswith("Would return 0 B of 14 MiB cached; 2 MiB would stay")
    assert receipt.message.endswith("12 MiB would stay with CUDA graphs and memory pools.")
    del pool
    receipt = run(device, "empty_cache", dry_run=True)
    assert receipt.message.startswith("Would return 12 MiB of 14 MiB cached; 2 MiB would stay")


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

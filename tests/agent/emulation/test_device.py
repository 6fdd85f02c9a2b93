from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from vramscope.devices.device import Device
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import DeviceInfo

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from vramscope.emulation import Emulation

pytestmark = pytest.mark.torch

Start = Callable[..., "Emulation"]
MIB = 1 << 20


def test_the_device_says_that_it_is_emulated(emulate: Start) -> None:
    device: Device = emulate(96 * MIB).device

    assert device.info == DeviceInfo(index=0, name="emulated", total_bytes=96 * MIB, emulated=True)
    assert device.busy_reason() is None


def test_only_what_the_allocator_holds_is_in_use(emulate: Start) -> None:
    device = emulate(96 * MIB).device
    kept = torch.empty(30 * MIB + 1, dtype=torch.uint8)

    memory = device.device_memory()

    assert (memory.total_bytes, memory.used_bytes, memory.free_bytes) == (
        96 * MIB,
        32 * MIB,
        64 * MIB,
    )
    unknown = {memory.process_bytes, memory.other_bytes, memory.power_mw, memory.temperature_c}
    assert unknown == {UNKNOWN}
    assert memory.utilization_percent == UNKNOWN
    assert kept.nbytes == device.segments()[0]["requested_size"]


def test_empty_cache_gives_back_what_is_unused(emulate: Start) -> None:
    device = emulate().device
    kept = torch.empty(30 * MIB, dtype=torch.uint8)
    torch.empty(40 * MIB, dtype=torch.uint8)
    assert device.device_memory().used_bytes == 70 * MIB

    device.empty_cache()

    assert device.device_memory().used_bytes == kept.nbytes
    assert [segment["total_size"] for segment in device.segments()] == [kept.nbytes]


def test_peaks_follow_a_reset(emulate: Start) -> None:
    device = emulate().device
    kept = torch.empty(30 * MIB, dtype=torch.uint8)
    torch.empty(40 * MIB, dtype=torch.uint8)
    assert device.memory_stats()["allocated_bytes"]["all"]["peak"] == 70 * MIB

    device.reset_peaks()

    assert device.memory_stats()["allocated_bytes"]["all"]["peak"] == kept.nbytes


def test_the_summary_is_labelled(emulate: Start) -> None:
    device = emulate().device
    kept = torch.empty(30 * MIB, dtype=torch.uint8)

    summary = device.memory_summary()

    assert "device 0 (emulated)" in summary
    assert f"{kept.nbytes >> 10} KiB" in summary

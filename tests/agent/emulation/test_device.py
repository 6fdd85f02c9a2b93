from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from vramscope.commands.cache_plan import plan_empty_cache
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


def test_the_totals_since_a_reset(emulate: Start) -> None:
    device = emulate().device
    kept = torch.empty(30 * MIB, dtype=torch.uint8)
    assert device.memory_stats()["allocated_bytes"]["all"]["allocated"] == kept.nbytes

    device.reset_accumulated()

    assert device.memory_stats()["allocated_bytes"]["all"]["allocated"] == 0
    assert device.memory_stats()["allocated_bytes"]["all"]["current"] == kept.nbytes


def test_a_cap_of_the_job_is_a_limit_of_the_process_and_not_of_the_device(emulate: Start) -> None:
    told: list[DeviceInfo] = []
    device = emulate(96 * MIB, on_change=told.append).device
    device.device_memory()
    device.set_memory_fraction(0.5)
    assert told == []  # by the thread that reads only

    assert device.device_memory().total_bytes == 96 * MIB
    device.device_memory()

    assert told == [device.info]
    assert (device.info.total_bytes, device.info.limit_bytes) == (96 * MIB, 48 * MIB)
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"48.00 MiB allowed; Of the allocated"):
        torch.empty(50 * MIB, dtype=torch.uint8)
    device.set_memory_fraction(1.0)
    assert device.info.limit_bytes is None
    torch.empty(50 * MIB, dtype=torch.uint8)


def test_the_options_can_cap_from_the_start(
    emulate: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vramscope.emulation import emulation

    monkeypatch.setattr(emulation, "modelled_version", lambda text: (2, 12))
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.5")
    device = emulate(96 * MIB).device

    assert device.info.limit_bytes == 48 * MIB
    assert device.memory_fraction == 0.5
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"48\.00 MiB allowed"):
        torch.empty(50 * MIB, dtype=torch.uint8)


def test_what_stands_before_a_wrong_option_counts(emulate: Start) -> None:
    device = emulate().device

    with pytest.raises((ValueError, RuntimeError), match="parrots"):
        device.change_settings("expandable_segments:True,parrots:3")

    torch.empty(30 * MIB, dtype=torch.uint8)
    assert device.memory_stats()["segment"]["all"]["current"] == 0


def test_options_can_be_changed_while_it_runs(emulate: Start) -> None:
    device = emulate().device
    device.change_settings("expandable_segments:True")
    kept = torch.empty(30 * MIB, dtype=torch.uint8)

    (segment,) = device.segments()
    assert segment["is_expandable"]
    assert segment["page_bytes"] == 20 * MIB
    assert segment["total_size"] == 40 * MIB
    assert device.snapshot()["allocator_settings"]["expandable_segments"] is True
    assert device.allocator_settings() == "expandable_segments:True"
    assert kept.nbytes == segment["requested_size"]


@pytest.mark.parametrize("expandable", [False, True])
def test_the_plan_for_empty_cache_is_what_comes_of_it(emulate: Start, expandable: bool) -> None:
    device = emulate().device
    device.change_settings(f"expandable_segments:{expandable}")
    sizes = (30, 45, 1, 5, 25, 70, 3)
    tensors = [torch.empty(size * MIB, dtype=torch.uint8) for size in sizes]
    small = [torch.empty(300_000, dtype=torch.uint8) for _ in range(20)]
    del tensors[1::2], small[3:17]

    plan = plan_empty_cache(device.segments())
    before_bytes = device.device_memory().used_bytes
    device.empty_cache()

    assert plan.returnable_bytes > 0
    assert before_bytes - device.device_memory().used_bytes == plan.returnable_bytes


def test_a_history_is_recorded_and_forgotten(emulate: Start) -> None:
    from vramscope.emulation.history import Context, HistoryRequest

    device = emulate().device
    torch.ones(10)
    device.record_history(HistoryRequest(Context.ALL, 100))
    recording = [device.is_recording]
    kept = torch.ones(20)
    snapshot = device.snapshot()
    (trace,) = snapshot["device_traces"]
    assert [(entry["action"], entry["size"]) for entry in trace][-1] == ("alloc", kept.nbytes)
    live = [b for s in snapshot["segments"] for b in s["blocks"] if b["state"] != "inactive"]
    assert [block["frames"][0]["name"] for block in live] == [
        "test_a_history_is_recorded_and_forgotten"
    ]

    (shown,) = device.segments()
    assert [bool(block["frames"]) for block in shown["blocks"]] == [
        block["requested_size"] == kept.nbytes and block["state"] != "inactive"
        for block in shown["blocks"]
    ]

    device.stop_history()

    recording.append(device.is_recording)
    assert recording == [True, False]
    assert device.snapshot()["device_traces"] == [[]]
    with device._mirror.model() as model:
        assert model.on_event is None


def test_a_snapshot_leaves_a_mark_for_the_next_one(emulate: Start) -> None:
    from vramscope.emulation.history import Context, HistoryRequest

    device = emulate().device
    device.record_history(HistoryRequest(Context.ALL, 100))
    kept = torch.empty(30 * MIB, dtype=torch.uint8)
    assert [e["action"] for e in device.snapshot()["device_traces"][0]] == [
        "segment_alloc",
        "alloc",
    ]

    mark = device.snapshot()["device_traces"][0][-1]
    assert (mark["action"], mark["size"], mark["addr"]) == ("snapshot", kept.nbytes, 0)


def test_the_summary_is_labelled(emulate: Start) -> None:
    device = emulate().device
    kept = torch.empty(30 * MIB, dtype=torch.uint8)

    summary = device.memory_summary()

    assert "device 0 (emulated)" in summary
    assert f"{kept.nbytes >> 10} KiB" in summary


def test_a_storage_lies_where_the_segments_have_its_block(emulate: Start) -> None:
    device = emulate().device
    tensor = torch.ones(30 * MIB, dtype=torch.uint8)
    (segment,) = device.segments()
    assert device.storage(tensor) == (segment["blocks"][0]["address"], tensor.nbytes)
    assert device.storage(torch.empty(0)) is None

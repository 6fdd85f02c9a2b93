"""The driver's numbers: the right device, the right shares, and unknown where it does not say."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.fake_nvml import FakeNvml
from vramscope.collectors import nvml as nvml_module
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.devices.device import DeviceMemory
from vramscope.notices import Notices
from vramscope_protocol.columns import UNKNOWN

OWN = os.getpid()
OTHER = OWN + 1


@pytest.fixture(params=["host", "container"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether pids of the driver are our pids."""
    place: str = request.param
    monkeypatch.setattr(nvml_module, "_sees_every_process", lambda: place == "host")
    return place


def monitor(nvml: FakeNvml, clock: FakeClock | None = None, visible: str | None = None) -> Any:
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    library = NvmlLibrary(Notices(), lambda: nvml)
    return NvmlMonitor(library, clock or FakeClock(), environ)


def read_for_a_second(monitor: NvmlMonitor, clock: FakeClock, reserved: int = 0) -> DeviceMemory:
    for _ in range(10):
        memory = monitor.read(reserved)
        clock.advance(0.1)
    return memory


def test_one_second_of_reading_gives_everything(place: str) -> None:
    clock = FakeClock()
    nvml = FakeNvml({"uuid": "GPU-a", "used": 300, "processes": [(OWN, 200), (OTHER, 60)]})
    device = monitor(nvml, clock)
    assert device.select(0)
    assert (device.name, device.uuid, device.total_bytes) == ("Fake GPU", "GPU-a", 1000)
    memory = read_for_a_second(device, clock)
    assert memory == DeviceMemory(
        total_bytes=1000,
        used_bytes=300,
        free_bytes=700,
        process_bytes=200,
        # In a container the list may be short: what is used and not ours is the others'.
        other_bytes=60 if place == "host" else 100,
        utilization_percent=55,
        power_mw=250_000,
        temperature_c=61,
    )


def test_calls_are_few_and_never_the_slow_ones() -> None:
    clock = FakeClock()
    nvml = FakeNvml({"uuid": "GPU-a"})
    device = monitor(nvml, clock)
    device.select(0)
    per_read = []
    for _ in range(30):
        nvml.calls.clear()
        device.read()
        per_read.append(list(nvml.calls))
        clock.advance(0.1)
    # Together: the second one costs less than the first.
    assert sum(map(bool, per_read)) == 3
    calls = [name for names in per_read for name in names]
    assert calls.count("nvmlDeviceGetMemoryInfo") == 3
    assert calls.count("nvmlDeviceGetComputeRunningProcesses") == 3
    assert not any("Pcie" in name or "Energy" in name for name in calls)


def test_memory_is_read_at_once_when_pytorchs_share_changes() -> None:
    data: dict[str, Any] = {"uuid": "GPU-a", "used": 300}
    device = monitor(FakeNvml(data))
    device.select(0)
    assert device.read(10).used_bytes == 300
    data["used"] = 500
    assert device.read(10).used_bytes == 300
    assert device.read(200).used_bytes == 500


def test_a_process_that_is_not_listed_is_unknown_only_in_a_container(place: str) -> None:
    clock = FakeClock()
    device = monitor(FakeNvml({"uuid": "GPU-a", "processes": [(OTHER, 60)]}), clock)
    device.select(0)
    memory = read_for_a_second(device, clock)
    expected = (0, 60) if place == "host" else (UNKNOWN, UNKNOWN)
    assert (memory.process_bytes, memory.other_bytes) == expected


def test_a_share_smaller_than_what_pytorch_holds_is_somebody_elses(place: str) -> None:
    clock = FakeClock()
    device = monitor(FakeNvml({"uuid": "GPU-a", "processes": [(OWN, 50)]}), clock)
    device.select(0)
    memory = read_for_a_second(device, clock, reserved=51)
    assert (memory.process_bytes, memory.other_bytes) == (UNKNOWN, UNKNOWN)
    assert memory.used_bytes == 300


def test_a_driver_that_lists_processes_without_their_bytes(place: str) -> None:
    clock = FakeClock()
    device = monitor(FakeNvml({"uuid": "GPU-a", "processes": [(OWN, None), (OTHER, 5)]}), clock)
    device.select(0)
    memory = read_for_a_second(device, clock)
    assert memory.process_bytes == UNKNOWN
    assert memory.other_bytes == (5 if place == "host" else UNKNOWN)


def test_the_drivers_number_for_not_available_is_unknown(place: str) -> None:
    clock = FakeClock()
    device = monitor(
        FakeNvml({"uuid": "GPU-a", "used": 300, "processes": [(OWN, (1 << 64) - 1)]}), clock
    )
    device.select(0)
    memory = read_for_a_second(device, clock)
    assert (memory.process_bytes, memory.used_bytes) == (UNKNOWN, 300)
    assert memory.other_bytes == (0 if place == "host" else UNKNOWN)


@pytest.mark.parametrize(
    "memory",
    [
        {"errors": {"nvmlDeviceGetMemoryInfo": FakeNvml.NVMLError_NotSupported()}},
        {"total": 0, "used": 0, "free": 0},
        {"total": (1 << 64) - 1, "used": (1 << 64) - 1, "free": 0},
    ],
)
def test_a_device_without_memory_of_its_own_has_unknown_memory(memory: dict[str, Any]) -> None:
    clock = FakeClock()
    device = monitor(FakeNvml({"uuid": "GPU-a", **memory}), clock)
    assert device.select(0)
    assert (device.uuid, device.total_bytes) == ("GPU-a", None)
    read = read_for_a_second(device, clock)
    assert (read.total_bytes, read.used_bytes, read.free_bytes) == (UNKNOWN, UNKNOWN, UNKNOWN)
    assert read.utilization_percent == 55


def test_what_one_device_refuses_the_next_one_may_answer() -> None:
    clock = FakeClock()
    refused = {"nvmlDeviceGetPowerUsage": FakeNvml.NVMLError_NotSupported()}
    device = monitor(FakeNvml({"uuid": "GPU-a", "errors": refused}, {"uuid": "GPU-b"}), clock)
    device.select(0)
    assert read_for_a_second(device, clock).power_mw == UNKNOWN
    device.select(1)
    assert read_for_a_second(device, clock).power_mw == 250_000


def test_an_old_driver_has_the_first_memory_call_only() -> None:
    nvml = FakeNvml({"uuid": "GPU-a", "has_v2": False})
    device = monitor(nvml)
    device.select(0)
    nvml.calls.clear()
    assert device.read().used_bytes == 300
    assert nvml.calls.count("nvmlDeviceGetMemoryInfo") == 1


def test_a_reading_that_fails_is_unknown_and_the_others_go_on() -> None:
    clock = FakeClock()
    nvml = FakeNvml({"uuid": "GPU-a"})
    nvml.errors["nvmlDeviceGetPowerUsage"] = FakeNvml.NVMLError_NotSupported()
    device = monitor(nvml, clock)
    device.select(0)
    memory = read_for_a_second(device, clock)
    assert memory.power_mw == UNKNOWN
    assert memory.temperature_c == 61


@pytest.mark.parametrize(
    ("visible", "index", "uuid"),
    [
        (None, 1, "GPU-b"),
        ("1,0", 0, "GPU-b"),
        ("GPU-b", 0, "GPU-b"),
        ("MIG-a1", 0, "MIG-a1"),
    ],
)
def test_the_device_that_cuda_shows(visible: str | None, index: int, uuid: str) -> None:
    nvml = FakeNvml(
        {"uuid": "GPU-a"}, {"uuid": "GPU-b"}, {"uuid": "GPU-c", "parts": [{"uuid": "MIG-a1"}]}
    )
    device = monitor(nvml, visible=visible)
    assert device.select(index)
    assert device.uuid == uuid


def test_on_a_split_device_it_is_the_slice_and_not_the_whole() -> None:
    nvml = FakeNvml({"uuid": "GPU-a", "total": 1000, "parts": [{"uuid": "MIG-1", "total": 100}]})
    device = monitor(nvml)
    assert device.select(0)
    assert (device.uuid, device.total_bytes) == ("MIG-1", 100)


def test_a_split_device_whose_slice_is_hidden_is_unknown() -> None:
    device = monitor(FakeNvml({"uuid": "GPU-a", "parts": []}))
    assert not device.select(0)
    assert device.read() == DeviceMemory()


def test_the_uuid_that_cuda_reports_settles_it() -> None:
    nvml = FakeNvml({"uuid": "GPU-a"}, {"uuid": "GPU-b"})
    device = monitor(nvml)
    assert device.select(0, "b")
    assert device.uuid == "GPU-b"


def test_a_card_of_another_uuid_is_another_card() -> None:
    device = monitor(FakeNvml({"uuid": "GPU-a"}, {"uuid": "GPU-b"}))
    assert not device.select(0, uuid="c")
    assert (device.uuid, device.total_bytes) == ("", None)
    assert device.read() == DeviceMemory()


def test_memory_alone_can_be_read_for_a_device_beside_the_first() -> None:
    nvml = FakeNvml({"uuid": "GPU-a", "used": 300})
    device = monitor(nvml)
    assert device.read_memory() == DeviceMemory()
    device.select(0)
    nvml.calls.clear()
    assert device.read_memory().used_bytes == 300
    assert nvml.calls == ["nvmlDeviceGetMemoryInfo"]


@pytest.mark.parametrize(("visible", "index"), [("", 0), ("0", 1), (None, 2)])
def test_a_device_that_is_not_visible_is_unknown(visible: str | None, index: int) -> None:
    device = monitor(FakeNvml({"uuid": "GPU-a"}, {"uuid": "GPU-b"}), visible=visible)
    assert not device.select(index)
    assert (device.name, device.uuid, device.total_bytes) == ("", "", None)
    assert device.read() == DeviceMemory()


def test_a_reading_is_the_callers_own() -> None:
    device = monitor(FakeNvml({"uuid": "GPU-a"}))
    device.select(0)
    device.read().used_bytes = -1
    assert device.read().used_bytes == 300


def test_the_driver_tells_its_version() -> None:
    nvml = FakeNvml({"uuid": "GPU-a"})
    device = monitor(nvml)
    assert device.driver_version() == ""
    device.select(0)
    assert device.driver_version() == "580.1"
    # It is asked every second what is known of the software, and this never changes.
    nvml.calls.clear()
    assert device.driver_version() == "580.1"
    assert nvml.calls == []


def test_the_list_of_processes_is_kept_with_what_pytorch_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvml_module, "_sees_every_process", lambda: True)
    processes = [(OWN, 700), (OTHER, None)]
    device: dict[str, Any] = {"uuid": "GPU-0", "processes": processes}
    clock = FakeClock()
    monitor = NvmlMonitor(NvmlLibrary(Notices(), lambda: FakeNvml(device)), clock, {})
    assert monitor.last_listing().processes is None
    monitor.select(0)
    monitor.read(reserved_bytes=500)
    listing = monitor.last_listing()
    assert (listing.own_bytes, listing.outside_bytes) == (700, 200)
    assert listing.processes == ((OWN, 700), (OTHER, None))

    # At once when PyTorch's share has changed: the difference is of one moment.
    processes[0] = (OWN, 900)
    monitor.read(reserved_bytes=500)
    assert monitor.last_listing() is listing
    monitor.read(reserved_bytes=650)
    assert monitor.last_listing().outside_bytes == 250

    # And within a second when more of the device is in use, whoever it is.
    processes[1] = (OTHER, 40)
    device["used"] = 340
    clock.advance(0.9 * nvml_module.INTERVAL_NS / 1e9)
    monitor.read(reserved_bytes=650)
    assert monitor.last_listing().processes == ((OWN, 900), (OTHER, None))
    clock.advance(0.1 * nvml_module.INTERVAL_NS / 1e9)
    monitor.read(reserved_bytes=650)
    assert monitor.last_listing().processes == ((OWN, 900), (OTHER, 40))

    # The whole sentinel, and numbers of another pid namespace, say nothing.
    processes[0] = (OWN, (1 << 64) - 1)
    monitor.read(reserved_bytes=651)
    assert monitor.last_listing().outside_bytes == UNKNOWN
    processes[0] = (OWN, 100)
    monitor.read(reserved_bytes=652)
    assert monitor.last_listing().outside_bytes == UNKNOWN
    assert monitor.last_listing().processes is None


def calls_of(nvml: FakeNvml, device: NvmlMonitor, clock: FakeClock, seconds: float) -> list[str]:
    """What the driver is asked within such a time at 10 Hz."""
    nvml.calls.clear()
    for _ in range(round(seconds * 10)):
        clock.advance(0.1)
        device.read(reserved_bytes=500)
    return list(nvml.calls)


def test_a_driver_whose_numbers_rest_is_asked_five_times_a_second_in_one_go() -> None:
    clock, nvml = FakeClock(), FakeNvml({"uuid": "GPU-0"})
    device = monitor(nvml, clock)
    device.select(0)
    read_for_a_second(device, clock, 500)
    calls = calls_of(nvml, device, clock, 10)
    assert len(calls) == 50
    assert calls.count("nvmlDeviceGetMemoryInfo") == 10
    assert calls[:5] == calls[5:10]


def test_memory_that_others_move_is_read_four_times_a_second_until_it_rests() -> None:
    clock = FakeClock()
    card: dict[str, Any] = {"uuid": "GPU-0", "used": 300}
    nvml = FakeNvml(card)
    device = monitor(nvml, clock)
    device.select(0)
    read_for_a_second(device, clock, 500)
    card["used"] = 340
    clock.advance(1)
    assert device.read(500).used_bytes == 340
    moved = []
    for used in range(350, 360):
        card["used"] = used
        clock.advance(0.3)
        moved.append(device.read(500).used_bytes)
    assert moved == list(range(350, 360))
    calls_of(nvml, device, clock, 3)
    assert calls_of(nvml, device, clock, 10).count("nvmlDeviceGetMemoryInfo") == 10


def test_in_a_container_only_this_process_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_module, "_sees_every_process", lambda: False)
    fake = FakeNvml({"uuid": "GPU-0", "processes": [(OWN, 700), (OTHER, 5)]})
    monitor = NvmlMonitor(NvmlLibrary(Notices(), lambda: fake), FakeClock(), {})
    monitor.select(0)
    monitor.read(reserved_bytes=500)
    assert monitor.last_listing().outside_bytes == 200
    assert monitor.last_listing().processes is None

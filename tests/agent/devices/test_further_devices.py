"""Devices that the job uses beside the one that trains: found, named, and read."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.fake_nvml import FakeNvml
from tests.support.fake_torch import FakeTorch, install_fake_torch, nested_stats
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.devices.cuda import CudaDevice
from vramscope.devices.further_devices import FurtherDevices
from vramscope.notices import Notices
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.series import unit_of


class Rig:
    """Three GPUs, the driver's list the other way round; the job trains on device 0."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.nvml = FakeNvml(
            *(
                {"uuid": f"GPU-uuid-{each}", "total": 1000 + each, "used": each}
                for each in (2, 1, 0)
            )
        )
        notices = Notices()
        library = NvmlLibrary(notices, lambda: self.nvml)
        self.device = CudaDevice(NvmlMonitor(library, self.clock, {}), notices)
        self.further = FurtherDevices(
            self.device,
            self.device.follow_current_device,
            self.clock,
            lambda: NvmlMonitor(library, self.clock, {}),
        )

    def read(self, after_s: float = 3.0) -> dict[str, int]:
        self.clock.advance(after_s)
        self.device.memory_stats()
        values = self.further.read()
        return dict(zip(self.further.names, values, strict=True))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    fake = install_fake_torch(monkeypatch, (2, 11), device_count=3)
    fake.stats[0] = nested_stats(reserved_bytes=100, allocated_bytes=50)
    return fake


def test_a_device_on_which_nothing_is_reserved_is_not_shown(fake: FakeTorch) -> None:
    rig = Rig()
    assert rig.read() == {}
    assert rig.further.infos == []


def test_what_the_process_holds_on_another_device_has_columns_with_its_number(
    fake: FakeTorch,
) -> None:
    rig = Rig()
    rig.further.at_boundary()
    fake.stats[2] = nested_stats(reserved_bytes=70, allocated_bytes=30, active_bytes=40)
    row = rig.read()
    assert row["allocated_bytes.all.current@2"] == 30
    assert row["active_bytes.all.current@2"] == 40
    assert row["reserved_bytes.all.peak@2"] == 70
    assert {name.partition("@")[2] for name in row} == {"2"}
    assert {unit_of(name) for name in row} == {"B"}


def test_the_drivers_numbers_are_unknown_until_cuda_has_told_the_uuid(fake: FakeTorch) -> None:
    rig = Rig()
    rig.further.at_boundary()
    fake.stats[2] = nested_stats(reserved_bytes=70)
    assert rig.read()["device.used_bytes@2"] == UNKNOWN
    assert rig.further.infos[0].name == ""
    rig.further.at_boundary()
    row = rig.read()
    assert (row["device.used_bytes@2"], row["device.total_bytes@2"]) == (2, 1002)
    (info,) = rig.further.infos
    assert (info.index, info.uuid, info.total_bytes) == (2, "GPU-uuid-2", 1002)


def test_a_device_that_the_driver_does_not_know_keeps_what_cuda_says(
    fake: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = SimpleNamespace(uuid="another", name="Card", total_memory=77)
    monkeypatch.setattr(
        fake.modules["torch.cuda"], "get_device_properties", lambda index: properties
    )
    rig = Rig()
    fake.stats[1] = nested_stats(reserved_bytes=70)
    rig.read()
    rig.further.at_boundary()
    assert rig.read()["device.used_bytes@1"] == UNKNOWN
    assert [(info.name, info.total_bytes) for info in rig.further.infos] == [("Card", 77)]


def test_it_stays_when_it_is_given_back_and_is_read_twice_a_second(fake: FakeTorch) -> None:
    rig = Rig()
    fake.stats[1] = nested_stats(reserved_bytes=70)
    assert rig.read()["reserved_bytes.all.current@1"] == 70
    names = rig.further.names
    fake.stats[1] = nested_stats()
    assert rig.read(0.4)["reserved_bytes.all.current@1"] == 70
    assert rig.read(0.2)["reserved_bytes.all.current@1"] == 0
    assert rig.further.names is names


def test_a_job_that_moves_to_it_leaves_the_other_one_behind(fake: FakeTorch) -> None:
    rig = Rig()
    rig.further.at_boundary()
    fake.stats[1] = nested_stats(reserved_bytes=70)
    assert {name.partition("@")[2] for name in rig.read()} == {"1"}
    fake.current_device = 1
    for _ in range(9):
        rig.further.at_boundary()
    assert rig.device.index == 1
    assert {name.partition("@")[2] for name in rig.read()} == {"0"}


@pytest.mark.parametrize("state", ["not initialised", "capturing"])
def test_cuda_is_not_asked_when_it_must_not_be(fake: FakeTorch, state: str) -> None:
    rig = Rig()
    fake.stats[1] = nested_stats(reserved_bytes=70)
    rig.read()
    fake.initialized = state != "not initialised"
    fake.capturing = state == "capturing"
    rig.further.at_boundary()
    assert rig.further.infos[0].name == ""
    expected: Any = UNKNOWN if state == "not initialised" else 70
    assert rig.read()["reserved_bytes.all.current@1"] == expected


def test_counters_that_hang_on_python_code_are_not_read(fake: FakeTorch) -> None:
    rig = Rig()
    rig.read()
    torch: Any = fake.modules["torch"]
    torch._C._cuda_customAllocator(0, 0)
    fake.calls.clear()
    thread = threading.Thread(target=rig.read, name="vramscope-test")
    thread.start()
    thread.join()
    assert fake.calls == []

"""The backend that is up first is the one that is watched."""

from __future__ import annotations

import pytest

from tests.support.fake_backends import FakeBackend, optimizer_on, put_in_place
from tests.support.fake_clock import FakeClock
from tests.support.fake_nvml import FakeNvml
from tests.support.fake_torch import install_fake_torch
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.devices.accelerator import XPU, AcceleratorDevice
from vramscope.devices.cuda import CudaDevice
from vramscope.devices.device import Device
from vramscope.devices.in_use import DeviceInUse
from vramscope.devices.mps import MpsDevice
from vramscope.notices import Notices


class Rig:
    """All backends, over whatever torch is there."""

    def __init__(self) -> None:
        notices = Notices()
        library = NvmlLibrary(notices, lambda: FakeNvml({"uuid": "GPU-uuid-0"}))
        self.cuda = CudaDevice(NvmlMonitor(library, FakeClock(), {}), notices)
        self.xpu = AcceleratorDevice(XPU, notices)
        self.mps = MpsDevice(notices)
        self.device = DeviceInUse(self.cuda, [self.xpu, self.mps])


def test_until_a_backend_is_up_it_is_cuda_that_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install_fake_torch(monkeypatch)
    fake.initialized = False
    rig = Rig()
    device: Device = rig.device
    assert device.memory_stats() is None
    assert device.device_memory().total_bytes == 1000
    assert rig.device.is_cuda
    fake.initialized = True
    rig.device.follow_current_device()
    assert device.memory_stats() is not None
    assert device.info.uuid == "GPU-uuid-0"
    assert device.busy_reason() is None
    assert device.memory_summary() == "summary of device 0"
    device.empty_cache()
    device.reset_peaks()
    assert "empty_cache" in fake.calls
    assert ("reset_peaks", 0) in fake.calls


def test_another_backend_that_is_up_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeBackend("xpu", own=True)
    put_in_place(monkeypatch, fake.torch)
    rig = Rig()
    assert rig.device.memory_stats() is None
    fake.is_up = True
    stats = rig.device.memory_stats()
    assert stats is not None
    rig.device.follow_current_device()
    assert not rig.device.is_cuda
    assert (rig.device.info.backend, rig.device.info.name) == ("xpu", "Card 1")
    assert rig.device.why_no_segments() == "segments of xpu devices are not read"
    assert rig.device.segments() == []


def test_what_was_settled_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    install_fake_torch(monkeypatch)
    rig = Rig()
    assert rig.device.memory_stats() is not None
    rig.mps.saw_optimizer(optimizer_on("mps"))
    rig.device.memory_stats()
    assert rig.device.is_cuda

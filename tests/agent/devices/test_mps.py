"""Apple's device: not set up by us, two numbers, and a peak that is said to be sampled."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.support.fake_backends import GIB, FakeMps, optimizer_on, put_in_place
from vramscope.collectors.allocator import AllocatorCounters
from vramscope.devices.device import Device, DeviceMemory
from vramscope.devices.mps import MpsDevice
from vramscope.notices import Notices
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import DeviceInfo


class Rig:
    """The device over a fake torch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fake = FakeMps()
        put_in_place(monkeypatch, self.fake.torch)
        self.notices = Notices()
        self.changes: list[DeviceInfo] = []
        self.device = MpsDevice(self.notices, self.changes.append)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(monkeypatch)


def test_nothing_is_asked_until_an_optimizer_steps_parameters_on_it(rig: Rig) -> None:
    device: Device = rig.device
    rig.device.saw_optimizer(optimizer_on("cpu"))
    rig.device.saw_optimizer(SimpleNamespace(param_groups=[]))
    assert not rig.device.is_up()
    assert device.memory_stats() is None
    assert device.device_memory() == DeviceMemory()
    assert device.memory_summary() == ""
    device.reset_peaks()
    assert rig.fake.calls == []
    rig.device.saw_optimizer(optimizer_on("mps"))
    assert rig.device.is_up()


def test_its_numbers_and_what_is_not_counted(rig: Rig) -> None:
    rig.device.saw_optimizer(optimizer_on("mps"))
    layout, values = AllocatorCounters().read(rig.device.memory_stats())
    row = dict(zip(layout.keys, values, strict=True))
    assert row["allocated_bytes.all.current"] == 7
    assert row["reserved_bytes.all.current"] == UNKNOWN
    assert row["num_ooms"] == UNKNOWN
    assert rig.device.device_memory() == DeviceMemory(process_bytes=20)
    assert rig.changes == [DeviceInfo(0, "Apple GPU", limit_bytes=48 * GIB, backend="mps")]
    assert "allocated: 7 bytes" in rig.device.memory_summary()
    assert rig.device.segments() == []
    assert rig.device.why_no_segments()


def test_the_peak_is_the_highest_sample_and_said_to_be(rig: Rig) -> None:
    rig.device.saw_optimizer(optimizer_on("mps"))
    seen = []
    for rig.fake.allocated in (7, 30, 12):
        stats = rig.device.memory_stats()
        assert stats is not None
        seen.append(stats["allocated_bytes"]["all"]["peak"])
    assert seen == [7, 30, 30]
    assert any("highest of the samples" in text for text in rig.notices.texts())
    rig.device.reset_peaks()
    stats = rig.device.memory_stats()
    assert stats is not None
    assert stats["allocated_bytes"]["all"]["peak"] == 12


def test_an_older_torch_has_no_recommended_limit(rig: Rig) -> None:
    del rig.fake.torch._C._mps_recommendedMaxMemory
    rig.device.saw_optimizer(optimizer_on("mps"))
    assert rig.device.info.limit_bytes is None


def test_storages_and_commands(rig: Rig) -> None:
    storage = SimpleNamespace(data_ptr=lambda: 64, nbytes=lambda: 8)
    tensor = SimpleNamespace(device=SimpleNamespace(type="mps"), untyped_storage=lambda: storage)
    assert rig.device.storage(tensor) == (64, 8)
    tensor.device = SimpleNamespace(type="cpu")
    assert rig.device.storage(tensor) is None
    rig.device.saw_optimizer(optimizer_on("mps"))
    rig.device.follow_current_device()
    assert rig.device.busy_reason() is None
    rig.fake.calls.clear()
    rig.device.empty_cache()
    assert rig.fake.calls == ["asked"]

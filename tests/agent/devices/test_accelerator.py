"""Devices of other makers: nothing is set up, what is not there is unknown, the rest is read."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_backends import GIB, FakeBackend, put_in_place
from vramscope.devices.accelerator import MTIA, OTHER, XPU, AcceleratorDevice, Backend
from vramscope.devices.device import Device, DeviceMemory
from vramscope.notices import Notices
from vramscope_protocol.messages import DeviceInfo


class Rig:
    """A device over a fake torch."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, backend: Backend, name: str, own: bool
    ) -> None:
        self.fake = FakeBackend(name, own)
        put_in_place(monkeypatch, self.fake.torch)
        self.notices = Notices()
        self.changes: list[DeviceInfo] = []
        self.device = AcceleratorDevice(backend, self.notices, on_change=self.changes.append)


@pytest.fixture(
    params=[(XPU, "xpu", True), (XPU, "xpu", False), (MTIA, "mtia", True), (OTHER, "npu", False)],
    ids=["xpu", "xpu by torch.accelerator", "mtia", "another"],
)
def rig(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Rig:
    backend, name, own = request.param
    rig = Rig(monkeypatch, backend, name, own)
    if not own and name == "xpu":
        # A release without counters of its own still has a module.
        rig.fake.torch.xpu = SimpleNamespace(is_initialized=lambda: rig.fake.is_up)
    return rig


def test_before_the_job_has_set_it_up_nothing_is_asked(rig: Rig) -> None:
    assert not rig.device.is_up()
    assert rig.fake.calls == []


def test_without_torch_it_is_not_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    assert not rig.device.is_up()


def test_counters_of_the_device_that_trains(rig: Rig) -> None:
    device: Device = rig.device
    rig.fake.is_up = True
    assert rig.device.is_up()
    rig.device.follow_current_device()
    stats = device.memory_stats()
    assert stats is not None
    assert stats["allocated_bytes"]["all"]["current"] == 5
    assert rig.fake.calls == [("stats", 1)]
    assert (device.info.index, device.info.backend) == (1, rig.fake.name)
    assert device.why_no_segments() is not None
    assert device.segments() == []
    assert "allocated_bytes.all.current: 5" in device.memory_summary()


def test_what_can_be_done_with_it(rig: Rig) -> None:
    rig.fake.is_up = True
    assert rig.device.is_up()
    rig.device.follow_current_device()
    rig.device.empty_cache()
    rig.device.reset_peaks()
    assert rig.fake.calls == ["empty_cache", ("reset", 1)]
    assert rig.device.busy_reason() is None
    rig.fake.graph_task = 3
    assert rig.device.busy_reason() == "the backward pass is running"


def test_a_device_without_counters_is_asked_once_and_said_to_have_none(rig: Rig) -> None:
    rig.fake.is_up = True
    rig.fake.stats = None
    assert rig.device.is_up()
    assert rig.device.memory_stats() is None
    assert rig.device.memory_stats() is None
    assert rig.device.memory_summary() == ""
    assert rig.notices.texts() == ["this PyTorch has no counters for this device"]


def test_name_and_size_are_told_when_pytorch_knows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(monkeypatch, XPU, "xpu", own=True)
    assert rig.device.device_memory() == DeviceMemory()
    rig.fake.is_up = True
    rig.device.follow_current_device()
    assert rig.device.device_memory() == DeviceMemory(total_bytes=64 * GIB)
    assert rig.changes == [DeviceInfo(1, "Card 1", "uuid-1", 64 * GIB, backend="xpu")]
    rig.device.device_memory()
    assert len(rig.changes) == 1


def test_the_backward_pass_is_no_time_to_ask_which_device(rig: Rig) -> None:
    rig.fake.is_up = True
    rig.fake.graph_task = 3
    rig.device.follow_current_device()
    assert rig.device.info.index == 0


def test_a_graph_that_is_captured_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(monkeypatch, XPU, "xpu", own=True)
    rig.fake.torch._C._xpu_isCurrentStreamCapturing = lambda: True
    assert rig.device.busy_reason() == "a graph is being captured"


def test_stand_ins_of_a_build_without_the_backend_are_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(monkeypatch, XPU, "xpu", own=True)
    dummy: Any = type("dummy", (), {})
    rig.fake.torch._C._xpu_memoryStats = dummy
    rig.fake.torch._C._xpu_isCurrentStreamCapturing = dummy
    rig.fake.is_up = True
    assert rig.device.memory_stats() is None
    assert rig.device.busy_reason() is None


@pytest.mark.parametrize("name", ["cuda", "mps", "xpu", "cpu"])
def test_what_has_a_class_of_its_own_is_not_taken_for_another(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(monkeypatch, OTHER, name, own=False)
    rig.fake.is_up = True
    assert not rig.device.is_up()


def test_storages_on_it_are_told_from_others(rig: Rig) -> None:
    rig.fake.is_up = True
    assert rig.device.is_up()
    rig.device.follow_current_device()

    def tensor(kind: str, index: int) -> Any:
        storage = SimpleNamespace(data_ptr=lambda: 64, nbytes=lambda: 8)
        device = SimpleNamespace(type=kind, index=index)
        return SimpleNamespace(device=device, untyped_storage=lambda: storage)

    assert rig.device.storage(tensor(rig.fake.name, 1)) == (64, 8)
    assert rig.device.storage(tensor(rig.fake.name, 0)) is None
    assert rig.device.storage(tensor("cpu", 1)) is None


@pytest.mark.torch
def test_the_real_torch_of_this_machine_is_not_set_up() -> None:
    torch = pytest.importorskip("torch")
    for backend in (XPU, MTIA, OTHER):
        device = AcceleratorDevice(backend, Notices())
        assert device.is_up() is False
    assert not torch.xpu.is_initialized()

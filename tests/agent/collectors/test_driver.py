"""NVML until PyTorch turns out to be one for ROCm."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_amdsmi import FakeAmdSmi
from tests.support.fake_clock import FakeClock
from tests.support.fake_nvml import FakeNvml
from vramscope.collectors.amd_smi import AmdSmiLibrary, AmdSmiMonitor
from vramscope.collectors.driver import Driver, torch_is_built_for_rocm
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.notices import Notices


class Rig:
    """Both drivers at once."""

    def __init__(self) -> None:
        clock, notices = FakeClock(), Notices()
        self.is_rocm: bool | None = None  # no PyTorch yet
        self.smi = FakeAmdSmi({"uuid": "u-0", "name": "MI", "total": 1, "used": 1})
        nvml = NvmlLibrary(notices, lambda: FakeNvml({"uuid": "GPU-a"}))
        self.driver = Driver(
            NvmlMonitor(nvml, clock, {}),
            AmdSmiMonitor(AmdSmiLibrary(notices, lambda: self.smi), clock, {}),
            lambda: self.is_rocm,
        )


def test_nvml_answers_and_amds_library_is_not_loaded() -> None:
    rig = Rig()
    assert rig.driver.select(0)
    assert (rig.driver.name, rig.driver.uuid) == ("Fake GPU", "GPU-a")
    assert rig.driver.total_bytes == rig.driver.read().total_bytes == 1000
    assert rig.driver.read_memory().used_bytes == 300
    assert rig.driver.driver_version() == "580.1"
    assert rig.driver.last_listing().reserved_bytes == 0
    assert rig.smi.calls == []


@pytest.mark.parametrize("selects_again", [True, False])
def test_once_pytorch_is_one_for_rocm_amds_answers(selects_again: bool) -> None:
    rig = Rig()
    rig.driver.select(0)
    rig.is_rocm = True
    if selects_again:
        rig.driver.select(0)
    assert rig.driver.read().total_bytes == 1 << 20
    assert rig.driver.uuid == "u-0"
    rig.is_rocm = False  # what a build is does not change, and is not asked again
    assert rig.driver.read().total_bytes == 1 << 20


@pytest.mark.parametrize(("hip", "expected"), [(None, False), ("6.2", True)])
def test_the_build_of_the_jobs_torch(
    hip: str | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert not torch_is_built_for_rocm()  # half imported
    torch.version = SimpleNamespace(hip=hip)
    assert torch_is_built_for_rocm() is expected


def test_once_pytorch_is_there_and_not_for_rocm_nvml_stays() -> None:
    rig = Rig()
    rig.is_rocm = False
    rig.driver.select(0)
    rig.is_rocm = True
    assert rig.driver.read().total_bytes == 1000
    assert rig.smi.calls == []

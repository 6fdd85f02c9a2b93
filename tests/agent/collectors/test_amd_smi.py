"""AMD's driver, as far as its library answers."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.support.fake_amdsmi import FakeAmdSmi
from tests.support.fake_clock import FakeClock
from vramscope.collectors.amd_smi import AmdSmiLibrary, AmdSmiMonitor
from vramscope.collectors.process_listing import ProcessListing
from vramscope.devices.device import DeviceMemory
from vramscope.notices import Notices
from vramscope_protocol.columns import UNKNOWN

MIB = 1 << 20


def card(number: int, **values: Any) -> dict[str, Any]:
    return {"uuid": f"u-{number}", "name": f"MI{number}", "total": 1000, "used": 300, **values}


class Rig:
    """A monitor over a fake library."""

    def __init__(self, *cards: dict[str, Any], **environ: str) -> None:
        self.smi = FakeAmdSmi(*cards)
        self.clock = FakeClock()
        self.notices = Notices()
        library = AmdSmiLibrary(self.notices, lambda: self.smi)
        self.monitor = AmdSmiMonitor(library, self.clock, environ)


def test_memory_load_power_and_heat() -> None:
    rig = Rig(card(0))
    assert rig.monitor.select(0, "whatever PyTorch says")
    assert (rig.monitor.name, rig.monitor.uuid) == ("MI0", "u-0")
    assert rig.monitor.total_bytes == 1000 * MIB
    assert rig.monitor.driver_version() == "6.12"
    memory = rig.monitor.read(7)
    assert memory == DeviceMemory(
        1000 * MIB, 300 * MIB, 700 * MIB, UNKNOWN, UNKNOWN, 55, 300_000, 61
    )
    assert rig.monitor.last_listing() == ProcessListing()


def test_it_is_read_once_a_second() -> None:
    rig = Rig(card(0))
    rig.monitor.select(0)
    rig.monitor.read()
    rig.smi.calls.clear()
    rig.clock.advance(0.9)
    rig.monitor.read()
    assert rig.smi.calls == []
    rig.clock.advance(0.1)
    rig.monitor.read()
    assert rig.smi.calls


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"load": "N/A"}, ("utilization_percent", UNKNOWN)),
        ({"heat": None}, ("temperature_c", UNKNOWN)),
        ({"heat": 1 << 63}, ("temperature_c", UNKNOWN)),
        ({"power": {"average_socket_power": 200}}, ("power_mw", 200_000)),
        ({"power": {}}, ("power_mw", UNKNOWN)),
        ({"total": 0}, ("total_bytes", UNKNOWN)),
        ({"used": "N/A"}, ("free_bytes", UNKNOWN)),
    ],
)
def test_what_is_not_available_is_no_number(
    values: dict[str, Any], expected: tuple[str, int]
) -> None:
    rig = Rig(card(0, **values))
    rig.monitor.select(0)
    name, value = expected
    assert getattr(rig.monitor.read(), name) == value


@pytest.mark.parametrize(
    "function",
    [
        "amdsmi_get_gpu_vram_usage",
        "amdsmi_get_gpu_activity",
        "amdsmi_get_power_info",
        "amdsmi_get_temp_metric",
        "amdsmi_get_gpu_asic_info",
        "amdsmi_get_gpu_device_uuid",
        "amdsmi_get_gpu_driver_info",
    ],
)
def test_a_call_that_fails_leaves_its_numbers_unknown(function: str) -> None:
    rig = Rig(card(0))
    rig.smi.refused.add(function)
    assert rig.monitor.select(0)
    rig.monitor.driver_version()
    assert UNKNOWN in (
        *(getattr(rig.monitor.read(), field) for field in DeviceMemory.__struct_fields__),
    )


@pytest.mark.parametrize(
    ("environ", "index", "uuid"),
    [
        ({}, 1, "u-1"),
        ({"HIP_VISIBLE_DEVICES": "2"}, 0, "u-2"),
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, 0, "u-1"),
        ({"ROCR_VISIBLE_DEVICES": "1,2"}, 0, "u-1"),
        ({"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"}, 0, "u-2"),
        ({"HIP_VISIBLE_DEVICES": "2"}, 1, ""),
        ({}, 3, ""),
    ],
)
def test_the_device_that_the_job_may_see(environ: dict[str, str], index: int, uuid: str) -> None:
    rig = Rig(card(0), card(1), card(2), **environ)
    assert rig.monitor.select(index) is bool(uuid)
    assert rig.monitor.uuid == uuid
    assert (rig.monitor.read().total_bytes == UNKNOWN) is not bool(uuid)


@pytest.mark.parametrize("error", [ImportError, OSError, KeyError])
def test_without_the_library_totals_are_unknown_and_it_is_said(error: type[Exception]) -> None:
    def load() -> ModuleType:
        raise error("none")

    notices = Notices()
    monitor = AmdSmiMonitor(AmdSmiLibrary(notices, load), FakeClock(), {})
    assert not monitor.select(0)
    assert not monitor.select(0)
    assert monitor.read() == monitor.read_memory() == DeviceMemory()
    assert monitor.driver_version() == ""
    assert notices.texts() == ["amdsmi is not installed: device totals are unknown"]


def test_a_machine_without_a_device() -> None:
    rig = Rig()
    assert not rig.monitor.select(0)
    assert rig.notices.texts() == ["amdsmi finds no device: device totals are unknown"]

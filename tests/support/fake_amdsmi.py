"""An ``amdsmi`` whose devices and failures the test sets."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any


class FakeAmdSmi(ModuleType):
    """Answers like ``amdsmi`` for devices that are plain dictionaries."""

    class AmdSmiException(Exception):
        """Base of its errors."""

    AmdSmiTemperatureType = SimpleNamespace(JUNCTION=1)
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT=0)

    def __init__(self, *devices: dict[str, Any]) -> None:
        super().__init__("amdsmi")
        self.devices = devices
        self.refused: set[str] = set()
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "amdsmi_init": lambda: None,
            "amdsmi_get_processor_handles": lambda: list(self.devices),
            "amdsmi_get_gpu_device_uuid": lambda device: device["uuid"],
            "amdsmi_get_gpu_asic_info": lambda device: {"market_name": device["name"]},
            "amdsmi_get_gpu_driver_info": lambda device: {"driver_version": "6.12"},
            "amdsmi_get_gpu_vram_usage": lambda device: {
                "vram_total": device["total"],
                "vram_used": device["used"],
            },
            "amdsmi_get_gpu_activity": lambda device: {"gfx_activity": device.get("load", 55)},
            "amdsmi_get_power_info": lambda device: device.get(
                "power", {"current_socket_power": 300, "average_socket_power": "N/A"}
            ),
            "amdsmi_get_temp_metric": lambda device, place, metric: device.get("heat", 61),
        }
        if name not in answers:
            raise AttributeError(name)

        def call(*args: Any) -> Any:
            self.calls.append(name)
            if name in self.refused:
                raise self.AmdSmiException(name)
            return answers[name](*args)

        return call

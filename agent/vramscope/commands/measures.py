"""The counters before and after a command, as its receipt shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vramscope.collectors.allocator import Layout
from vramscope.devices.device import Device
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.errors import CONFLICT, VramscopeError

NO_COUNTERS: Final = "the allocator has no counters yet: this process has not used the device"

_MEASURED: Final = Layout(
    (
        "reserved_bytes.all.current",
        "allocated_bytes.all.current",
        "active_bytes.all.current",
        "inactive_split_bytes.all.current",
    )
)

Measures = dict[str, Any]


def measure(device: Device) -> Measures:
    """What a device holds now, in bytes; what is not known is ``None``.

    Raises:
        VramscopeError: ``conflict``, this process has not used the device.
    """
    stats = device.memory_stats()
    if stats is None:
        raise VramscopeError(CONFLICT, NO_COUNTERS)
    values = _MEASURED.values(stats)
    measures: Measures = {
        key.partition(".")[0]: None if value == UNKNOWN else value
        for key, value in zip(_MEASURED.keys, values, strict=True)
    }
    free_bytes = device.device_memory().free_bytes
    measures["device_free_bytes"] = None if free_bytes == UNKNOWN else free_bytes
    return measures


def fall(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> int | None:
    """By how much a measure fell; ``None`` if it is not known."""
    if before[name] is None or after[name] is None:
        return None
    difference: int = before[name] - after[name]
    return difference

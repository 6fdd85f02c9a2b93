"""Which NVML device is CUDA device N: the rules of ``CUDA_VISIBLE_DEVICES``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class VisibleDevice(NamedTuple):
    """One device that CUDA shows: by its position in NVML, else by its UUID."""

    position: int | None = None
    uuid: str | None = None


def visible_devices(setting: str | None, uuids: Sequence[str]) -> list[VisibleDevice]:
    """List the devices in CUDA's order.

    The order of indices is that of the PCI bus. CUDA's own default order is by speed, which
    differs on machines with several models; the UUID that CUDA reports later settles it.

    Args:
        setting: the value of ``CUDA_VISIBLE_DEVICES``, ``None`` if it is not set.
        uuids: the UUID of every NVML device, in NVML's order.
    """
    if setting is None:
        return [VisibleDevice(index, uuid) for index, uuid in enumerate(uuids)]
    devices: list[VisibleDevice] = []
    for entry in setting.split(","):
        device = _device(entry.strip(), uuids)
        if device is None:
            break  # CUDA ignores everything after the first entry that names no device
        if device in devices:
            return []  # CUDA shows no device at all when one is named twice
        devices.append(device)
    return devices


def _device(entry: str, uuids: Sequence[str]) -> VisibleDevice | None:
    if entry.startswith("MIG-"):
        return VisibleDevice(uuid=entry)
    if entry.isdecimal():
        index = int(entry)
        return VisibleDevice(index, uuids[index]) if index < len(uuids) else None
    # A UUID may be shortened as long as it names one device.
    matches = [index for index, uuid in enumerate(uuids) if uuid.startswith(entry)]
    if not entry.startswith("GPU-") or len(matches) != 1:
        return None
    return VisibleDevice(matches[0], uuids[matches[0]])

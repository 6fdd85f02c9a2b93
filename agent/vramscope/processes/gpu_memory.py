"""How much memory of which GPU each process holds, as NVML tells it. What is unknown stays so."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from vramscope.collectors.nvml_library import Handle, NvmlLibrary


class GpuUse(Struct, frozen=True):
    """One process on one GPU.

    Args:
        index: NVML's number of the GPU.
        uuid: names it on every machine; "" if not known.
        name: its model.
        bytes: memory held there; ``None`` if the driver does not say.
    """

    index: int
    uuid: str
    name: str
    bytes: int | None


def read_gpu_uses(library: NvmlLibrary) -> dict[int, list[GpuUse]] | None:
    """Ask every GPU for its processes; ``None`` without NVML, or where it tells of none.

    In a container the numbers may be those of the host, and processes may be missing: that has
    to be weighed by who knows more of the process.

    Returns:
        The GPUs of each process that holds memory, by the number that NVML knows it under.
    """
    if not library.open():
        return None
    count = library.ask("nvmlDeviceGetCount")
    if count is None:
        return None
    uses: dict[int, list[GpuUse]] = {}
    has_answer = count == 0
    for index in range(count):
        handle = library.find("nvmlDeviceGetHandleByIndex", index)
        held = None if handle is None else _held_bytes(library, handle)
        if held is None:
            continue
        has_answer = True
        uuid = _text(library.ask("nvmlDeviceGetUUID", handle))
        name = _text(library.ask("nvmlDeviceGetName", handle))
        for pid, used_bytes in held.items():
            uses.setdefault(pid, []).append(GpuUse(index, uuid, name, used_bytes))
    return uses if has_answer else None


def total_bytes(uses: list[GpuUse]) -> int | None:
    """What a process holds on all GPUs together; ``None`` as soon as one part is not known."""
    total = 0
    for use in uses:
        if use.bytes is None:
            return None
        total += use.bytes
    return total


def _held_bytes(library: NvmlLibrary, handle: Handle) -> dict[int, int | None] | None:
    """Memory by process on one GPU; on a GPU split by MIG, on all its slices together."""
    # The whole GPU lists the processes of its slices too, where this user may see that.
    listed = library.find("nvmlDeviceGetComputeRunningProcesses", handle)
    if not listed:
        parts = [
            library.find("nvmlDeviceGetComputeRunningProcesses", part)
            for part in _slices(library, handle)
        ]
        answers = [part for part in parts if part is not None]
        listed = [process for part in answers for process in part] if answers else listed
    if listed is None:
        return None
    held: dict[int, int | None] = {}
    for process in listed:
        before = held.get(process.pid, 0)
        used = process.usedGpuMemory
        held[process.pid] = None if used is None or before is None else before + used
    return held


def _slices(library: NvmlLibrary, handle: Handle) -> list[Handle]:
    mode = library.find("nvmlDeviceGetMigMode", handle)
    if not mode or mode[0] != 1:
        return []
    count = library.find("nvmlDeviceGetMaxMigDeviceCount", handle) or 0
    parts = (
        library.find("nvmlDeviceGetMigDeviceHandleByIndex", handle, position)
        for position in range(count)
    )
    return [part for part in parts if part is not None]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else ""

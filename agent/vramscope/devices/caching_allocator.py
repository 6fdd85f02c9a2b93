"""PyTorch's CUDA caching allocator as it is reached in 2.4 to 2.14, without importing torch."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from typing import Any, Final

from vramscope_protocol.columns import UNKNOWN

_MAX_DEVICES: Final = 64
_LARGE_PAGE_BYTES: Final = 20 << 20

Stats = Mapping[str, Any]


def initialised_cuda() -> Any:
    """``torch._C`` of a process that uses CUDA, else ``None``. Imports and initialises nothing."""
    torch: Any = sys.modules.get("torch")
    is_initialized = getattr(getattr(torch, "cuda", None), "is_initialized", None)
    # Attributes may be missing while another thread is still importing torch.
    if is_initialized is None or not is_initialized():
        return None
    c_module: Any = torch._C
    return c_module if hasattr(c_module, "_cuda_memoryStats") else None


def read_stats(c_module: Any, index: int) -> Stats | None:
    """Nested counters of one device, ``None`` if there is no such device or no counters."""
    try:
        stats: Stats = c_module._cuda_memoryStats(index)
    except RuntimeError:
        return None  # no such device, or a pluggable allocator
    return stats


def device_in_use(c_module: Any, index: int, stats: Stats | None) -> tuple[int, Stats | None]:
    """The device on which this process has reserved the most, ``index`` if on none.

    Asked only until the first step boundary tells which device the training thread is on.
    """
    best = (index, stats)
    for other in range(_MAX_DEVICES):
        found = read_stats(c_module, other)
        if found is None:
            break
        if best[1] is None or current_bytes(found, "reserved_bytes") > current_bytes(
            best[1], "reserved_bytes"
        ):
            best = (other, found)
    return best


def current_bytes(stats: Stats | None, counter: str) -> int:
    """Current value of a counter over all pools, 0 if it is not there."""
    try:
        return int(stats[counter]["all"]["current"]) if stats else 0
    except (KeyError, TypeError):
        return 0


def counter_bytes(stats: Stats | None, counter: str, gauge: str) -> int:
    """One value of a counter over all pools, ``UNKNOWN`` if it is not there."""
    try:
        return int(stats[counter]["all"][gauge]) if stats else UNKNOWN
    except (KeyError, TypeError):
        return UNKNOWN


def read_snapshot(c_module: Any) -> dict[str, Any]:
    """Segments without the event history where PyTorch can leave it out (2.11 and newer)."""
    parameters = inspect.signature(sys.modules["torch"].cuda.memory_snapshot).parameters
    if "include_traces" in parameters:
        snapshot: dict[str, Any] = c_module._cuda_memorySnapshot((0, 0, False))
    elif "mempool_id" in parameters:
        snapshot = c_module._cuda_memorySnapshot(None)
    else:
        snapshot = c_module._cuda_memorySnapshot()
    return snapshot


def snapshot_obstacle(c_module: Any) -> str | None:
    """Why :func:`read_snapshot` would fail or cost too much now, ``None`` if it would not."""
    cuda = sys.modules["torch"].cuda
    if cuda.get_allocator_backend() != "native":
        return "this allocator backend has no segments to show"
    if "include_traces" in inspect.signature(cuda.memory_snapshot).parameters:
        return None
    if c_module._cuda_isHistoryEnabled():
        return (
            "memory history is being recorded, which this PyTorch puts into every list of "
            "segments (2.11 and newer can leave it out)"
        )
    return None


def large_page_bytes(settings: Mapping[str, Any]) -> int:
    """Page of a large expandable segment: a setting from 2.11 on, 20 MiB before."""
    for text in settings.values():
        match = re.search(r"large_segment_size_mb:(\d+)", text) if isinstance(text, str) else None
        if match:
            return int(match[1]) << 20
    return _LARGE_PAGE_BYTES

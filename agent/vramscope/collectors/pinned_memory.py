"""Pinned memory on the host that PyTorch's own allocator holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Any, Final

from msgspec import Struct

from vramscope.devices.caching_allocator import initialised_cuda
from vramscope_protocol.columns import UNKNOWN

_REST: Final = 4
"""Readings left out after each: one costs 74 µs on an H200, as much as a quarter of a turn."""
_SLOW_NS: Final = 5_000_000
_LONG_REST: Final = 60
"""Readings left out after one that waited for the allocator's lock, holding the GIL."""


class PinnedMemory(Struct, frozen=True):
    """Bytes in tensors, and bytes that the allocator holds in all."""

    used_bytes: int = UNKNOWN
    reserved_bytes: int = UNKNOWN


class PinnedMemoryReader:
    """Asks PyTorch's caching host allocator (2.7 and newer); makes no call into CUDA.

    Args:
        cuda: ``torch._C`` once the job has set CUDA up; before that nothing is asked, for the
            question alone could set it up.
        now_ns: measures how long an answer takes.
    """

    def __init__(
        self,
        cuda: Callable[[], Any] = initialised_cuda,
        now_ns: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self._cuda = cuda
        self._now_ns = now_ns
        self._has_none = False
        self._to_rest = 0
        self._latest = PinnedMemory()

    def read(self) -> PinnedMemory:
        """The numbers now; unknown where this PyTorch does not count them."""
        c_module = None if self._has_none else self._cuda()
        if c_module is None:
            return PinnedMemory()
        if self._to_rest:
            self._to_rest -= 1
            return self._latest
        ask = getattr(c_module, "_cuda_hostMemoryStats", None)
        start_ns = self._now_ns()
        try:
            stats = None if ask is None else ask()
        except RuntimeError:
            stats = None
        if stats is None:
            self._has_none = True
            return PinnedMemory()
        self._to_rest = _LONG_REST if self._now_ns() - start_ns > _SLOW_NS else _REST
        self._latest = pinned_memory(stats)
        return self._latest


def pinned_memory(stats: Mapping[str, Any]) -> PinnedMemory:
    """Understand the counters under the names of each release.

    From 2.11 on ``allocated_bytes`` is what the allocator holds, cached blocks included, and
    ``active_bytes`` what it has handed out. Before, ``allocated_bytes`` was what it had handed
    out, and ``reserved_bytes`` what it held.
    """
    if "active_bytes" in stats:
        return PinnedMemory(_current(stats, "active_bytes"), _current(stats, "allocated_bytes"))
    return PinnedMemory(_current(stats, "allocated_bytes"), _current(stats, "reserved_bytes"))


def _current(stats: Mapping[str, Any], name: str) -> int:
    try:
        value = stats[name]["current"]
    except (KeyError, TypeError):
        return UNKNOWN
    return value if isinstance(value, int) else UNKNOWN

"""A CUDA device that is pretended on a torch without one: counters and a driver at a real price.

Counters are built by C code, as PyTorch builds its own, and take about as long; each
call of the driver gives the GIL away, as a real one does. For benchmarks alone: nothing is counted.
"""

from __future__ import annotations

import ctypes
import marshal
import sys
from functools import partial
from itertools import repeat
from types import FunctionType, SimpleNamespace
from typing import Any, Final

import torch

from tests.support.fake_nvml import FakeNvml
from tests.support.fake_torch import nested_stats
from vramscope.peaks import torch_functions

_UUID: Final = "11111111-2222-3333-4444-555555555555"
_TOTAL_BYTES: Final = 80 << 30
_PID_WAIT: Final = ctypes.CDLL(None).getpid


class _Driver(FakeNvml):
    """A driver whose calls go through ctypes."""

    def __getattr__(self, name: str) -> Any:
        call = super().__getattr__(name)

        def through_ctypes(*args: Any, **options: Any) -> Any:
            _PID_WAIT()
            return call(*args, **options)

        return through_ctypes


class PretendedCuda:
    """Makes this process believe in one CUDA device, for good."""

    def __init__(self) -> None:
        stats = nested_stats(
            (2, 11), allocated_bytes=1 << 30, active_bytes=1 << 30, reserved_bytes=2 << 30
        )
        answers = map(marshal.loads, repeat(marshal.dumps(stats)))
        torch_c: Any = torch._C
        torch_functions.NATIVE_TYPES = (FunctionType, *torch_functions.NATIVE_TYPES)

        def memory_stats(index: int) -> Any:
            if index:
                raise RuntimeError("Invalid device argument")
            return next(answers)

        functions: dict[str, Any] = {
            "_cuda_memoryStats": memory_stats,
            "_cuda_resetPeakMemoryStats": {}.get,
            "_cuda_resetAccumulatedMemoryStats": {}.get,
            "_cuda_getDevice": partial(int),
            "_cuda_isCurrentStreamCapturing": partial(bool),
            "_cuda_isHistoryEnabled": partial(bool),
        }
        for name, function in functions.items():
            setattr(torch_c, name, function)
        cuda: Any = torch.cuda
        cuda.is_initialized = lambda: True
        cuda.get_allocator_backend = lambda: "native"
        cuda.get_device_properties = lambda index: SimpleNamespace(
            uuid=_UUID, name="a pretended device", total_memory=_TOTAL_BYTES
        )
        cuda.memory_snapshot = lambda mempool_id=None, include_traces=True: []
        torch_c._cuda_memorySnapshot = lambda arguments: {"segments": [], "allocator_settings": {}}
        sys.modules["pynvml"] = _Driver(
            {"uuid": f"GPU-{_UUID}", "total": _TOTAL_BYTES, "used": 3 << 30, "free": 77 << 30}
        )

"""PyTorch's own memory functions of CUDA, on a torch without CUDA, over allocators that are models.

Everything above ``torch._C`` is torch's own code; what it asks of ``torch._C`` is answered by one
model of the allocator for each device.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

from vramscope.collectors.allocator import flatten
from vramscope.peaks import torch_functions
from vramscope_analysis.allocator import Block, CachingAllocator


class NativeFunction:
    """What stands for a function that PyTorch has in C++."""

    def __init__(self, name: str, function: Callable[[Any], Any]) -> None:
        self.__name__ = name
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


class CountedCuda:
    """The devices, as the real torch of this process sees them."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, devices: int = 1, version: tuple[int, int] = (2, 11)
    ) -> None:
        import torch

        self.models = [CachingAllocator(1 << 30, version=version) for _ in range(devices)]
        self.current_device = 0
        self.capturing = False
        self.c_module: Any = torch._C
        self.originals: dict[str, Any] = {}
        for name, answer in (
            ("_cuda_memoryStats", CachingAllocator.memory_stats),
            ("_cuda_resetPeakMemoryStats", CachingAllocator.reset_peaks),
            ("_cuda_resetAccumulatedMemoryStats", CachingAllocator.reset_accumulated),
            ("_accelerator_getDeviceStats", CachingAllocator.memory_stats),
            ("_accelerator_resetPeakStats", CachingAllocator.reset_peaks),
            ("_accelerator_resetAccumulatedStats", CachingAllocator.reset_accumulated),
        ):
            function = NativeFunction(name, self._asking(answer))
            self.originals[name] = function
            monkeypatch.setattr(torch._C, name, function, raising=False)
        for name, value in (
            ("_cuda_getDevice", lambda: self.current_device),
            ("_cuda_isCurrentStreamCapturing", lambda: self.capturing),
            ("_accelerator_isAllocatorInitialized", lambda: True),
        ):
            monkeypatch.setattr(torch._C, name, value, raising=False)
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda.memory, "is_initialized", lambda: True)
        monkeypatch.setattr(torch_functions, "NATIVE_TYPES", (NativeFunction,))
        monkeypatch.setattr(torch_functions, "_of_process", None)
        accelerator: Any = sys.modules.get("torch.accelerator.memory")
        if accelerator is not None:
            monkeypatch.setattr(accelerator, "_get_device_index", lambda index, optional: index)

    def is_untouched(self) -> bool:
        """Whether every function is PyTorch's own again."""
        return all(getattr(self.c_module, name) is own for name, own in self.originals.items())

    def _asking(self, answer: Callable[[CachingAllocator], Any]) -> Callable[[int], Any]:
        def ask(index: int) -> Any:
            if not 0 <= index < len(self.models):
                raise RuntimeError("Invalid device argument")
            return answer(self.models[index])

        return ask


class Job:
    """Allocates on one device and on its untouched twin."""

    def __init__(self, cuda: CountedCuda, index: int = 0, seed: int = 0) -> None:
        self.model = cuda.models[index]
        self.twin = CachingAllocator(1 << 30, version=(2, 11))
        self._random = random.Random(seed)
        self._blocks: list[tuple[Block, Block]] = []

    def peak(self, size_bytes: int) -> None:
        """Allocate and free."""
        for allocator in (self.model, self.twin):
            allocator.free(allocator.malloc(size_bytes))

    def work(self) -> None:
        for _ in range(self._random.randrange(5)):
            if self._blocks and self._random.random() < 0.5:
                one, two = self._blocks.pop(self._random.randrange(len(self._blocks)))
                self.model.free(one)
                self.twin.free(two)
            else:
                size_bytes = 1 << self._random.randrange(9, 24)
                self._blocks.append((self.model.malloc(size_bytes), self.twin.malloc(size_bytes)))


def flat(stats: dict[str, Any]) -> dict[str, int]:
    """Counters as ``torch.cuda.memory_stats`` has them."""
    return flatten(stats)

"""A torch whose device is another maker's: XPU, MTIA, something else, or MPS."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_torch import nested_stats

GIB = 1 << 30


class FakeBackend:
    """The parts of torch that the agent reaches for one backend, with a state that the test sets.

    Args:
        name: of the backend.
        own: whether it has functions of its own, or only those of ``torch.accelerator``.
    """

    def __init__(self, name: str, own: bool) -> None:
        self.name = name
        self.is_up = False
        self.index = 1
        self.graph_task = -1
        self.calls: list[Any] = []
        self.stats: Any = nested_stats(allocated_bytes=5, reserved_bytes=9)
        torch: Any = ModuleType("torch")
        torch.version = SimpleNamespace(cuda=None, hip=None)
        torch.compiler = SimpleNamespace(is_compiling=lambda: False)
        torch.cuda = SimpleNamespace(is_initialized=lambda: False)
        torch._C = SimpleNamespace(_current_graph_task_id=lambda: self.graph_task)
        own_names = (f"_{name}_memoryStats", f"_{name}_resetPeakMemoryStats", f"_{name}_getDevice")
        shared = (
            "_accelerator_getDeviceStats",
            "_accelerator_resetPeakStats",
            "_accelerator_getDeviceIndex",
        )
        calls = (self._stats, lambda index: self.calls.append(("reset", index)), self._index)
        for function, call in zip(own_names if own else shared, calls, strict=True):
            setattr(torch._C, function, call)
        torch._C._get_privateuse1_backend_name = lambda: name
        torch._C._accelerator_isAllocatorInitialized = lambda: self.is_up
        torch._C._accelerator_emptyCache = lambda: self.calls.append("empty_cache")
        if own:
            module = SimpleNamespace(
                is_initialized=lambda: self.is_up,
                empty_cache=lambda: self.calls.append("empty_cache"),
                get_device_properties=lambda index: SimpleNamespace(
                    name=f"Card {index}", uuid=f"uuid-{index}", total_memory=64 * GIB
                ),
            )
            setattr(torch, name, module)
        self.torch = torch

    def _stats(self, index: int) -> Any:
        assert self.is_up, "asked before the job had set the backend up"
        if self.stats is None:
            raise RuntimeError("no such device")
        self.calls.append(("stats", index))
        return self.stats

    def _index(self) -> int:
        assert self.is_up, "asked before the job had set the backend up"
        return self.index


class FakeMps:
    """A torch with an MPS device; asking for a number sets it up, as in the real one."""

    def __init__(self) -> None:
        self.allocated = 7
        self.calls: list[str] = []
        torch: Any = ModuleType("torch")
        torch.compiler = SimpleNamespace(is_compiling=lambda: False)
        torch.cuda = SimpleNamespace(is_initialized=lambda: False)
        torch._C = SimpleNamespace(
            _current_graph_task_id=lambda: -1,
            _mps_currentAllocatedMemory=self._asked(lambda: self.allocated),
            _mps_driverAllocatedMemory=self._asked(lambda: 20),
            _mps_recommendedMaxMemory=self._asked(lambda: 48 * GIB),
        )
        torch.mps = SimpleNamespace(empty_cache=self._asked(lambda: None))
        self.torch = torch

    def _asked(self, answer: Any) -> Any:
        def ask() -> Any:
            self.calls.append("asked")
            return answer()

        return ask


def put_in_place(monkeypatch: pytest.MonkeyPatch, torch: Any) -> None:
    """Let this be torch for one test."""
    for name in reversed([name for name in sys.modules if name.partition(".")[0] == "torch"]):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", torch)


def optimizer_on(device_type: str) -> Any:
    """What the agent looks at of an optimizer."""
    parameter = SimpleNamespace(device=SimpleNamespace(type=device_type))
    return SimpleNamespace(param_groups=[{"params": []}, {"params": [parameter]}])

"""A torch without CUDA that answers like one with: counters, segments, capture, per version."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

POOLED = (
    "active",
    "active_bytes",
    "allocated_bytes",
    "allocation",
    "inactive_split",
    "inactive_split_bytes",
    "requested_bytes",
    "reserved_bytes",
    "segment",
)
SINGLE = ("oversize_allocations", "oversize_segments")
SCALARS = (
    "max_split_size",
    "num_alloc_retries",
    "num_device_alloc",
    "num_device_free",
    "num_ooms",
    "num_sync_all_streams",
)


def nested_stats(version: tuple[int, int] = (2, 6), **current: int) -> dict[str, Any]:
    """Counters in the shape of one torch version; ``current`` sets ``NAME.all.current``."""

    def stat(value: int) -> dict[str, int]:
        return {"current": value, "peak": value, "allocated": value, "freed": 0}

    stats: dict[str, Any] = {
        name: {
            "all": stat(current.get(name, 0)),
            "small_pool": stat(0),
            "large_pool": stat(current.get(name, 0)),
        }
        for name in POOLED
    }
    stats |= {name: stat(0) for name in SINGLE}
    stats |= {name: current.get(name, 0) for name in SCALARS}
    if version >= (2, 12):
        stats["num_oom_rejections"] = 0
    if version >= (2, 13):
        stats["reserved_bytes_by_private_pools"] = {(0, 1): stat(4096)}
    return stats


class FakeTorch:
    """The parts of torch that the agent reaches, with a state that the test sets."""

    def __init__(self, version: tuple[int, int], device_count: int) -> None:
        self.version = version
        self.initialized = True
        self.capturing = False
        self.graph_task = -1
        self.compiling = False
        self.current_device = 0
        self.backend = "native"
        self.records_history = False
        self.stats: list[Any] = [nested_stats(version) for _ in range(device_count)]
        self.segments: list[dict[str, Any]] = []
        self.settings: dict[str, Any] = {}
        self.calls: list[Any] = []
        self.modules = self._modules()

    def _modules(self) -> dict[str, ModuleType]:
        torch: Any = ModuleType("torch")
        cuda: Any = ModuleType("torch.cuda")
        memory: Any = ModuleType("torch.cuda.memory")
        graphs: Any = ModuleType("torch.cuda.graphs")
        torch.__version__ = f"{self.version[0]}.{self.version[1]}.0"
        torch.version = SimpleNamespace(cuda="12.8", hip=None)
        torch.compiler = SimpleNamespace(is_compiling=lambda: self.compiling)
        torch.cuda = cuda
        torch._C = SimpleNamespace(
            _cuda_memoryStats=self._memory_stats,
            _cuda_memorySnapshot=self._memory_snapshot,
            _cuda_isCurrentStreamCapturing=lambda: self.capturing,
            _cuda_isHistoryEnabled=lambda: self.records_history,
            _cuda_resetPeakMemoryStats=lambda index: self.calls.append(("reset_peaks", index)),
            _cuda_getDevice=lambda: self.current_device,
            _cuda_customAllocator=lambda allocate, free: (allocate, free),
            _current_graph_task_id=lambda: self.graph_task,
        )
        cuda.is_initialized = lambda: self.initialized
        cuda.empty_cache = lambda: self.calls.append("empty_cache")
        cuda.get_allocator_backend = lambda: self.backend
        cuda.get_device_properties = lambda index: SimpleNamespace(uuid=f"uuid-{index}")
        cuda.memory_snapshot = self._public_snapshot()
        cuda.memory_summary = lambda index: f"summary of device {index}"
        memory._cuda_beginAllocateToPool = lambda device, pool: None
        memory._cuda_endAllocateToPool = lambda device, pool: None

        class graph:
            def __enter__(self) -> None:
                return None

            def __exit__(self, *error: object) -> None:
                return None

        graphs.graph = graph
        cuda.memory, cuda.graphs = memory, graphs
        return {
            "torch": torch,
            "torch.cuda": cuda,
            "torch.cuda.memory": memory,
            "torch.cuda.graphs": graphs,
        }

    def _memory_stats(self, index: int) -> Any:
        self.calls.append(("stats", index))
        if not 0 <= index < len(self.stats) or self.stats[index] is None:
            raise RuntimeError("Invalid device argument")
        return self.stats[index]

    def _memory_snapshot(self, *arguments: Any) -> dict[str, Any]:
        if self.version >= (2, 11):
            expected: list[Any] = [((0, 0, False),)]
        elif self.version >= (2, 8):
            expected = [(None,)]
        else:
            expected = [()]
        if arguments not in expected:
            raise TypeError(f"expected {expected}, got {arguments}")
        return {"segments": self.segments, "allocator_settings": self.settings}

    def _public_snapshot(self) -> Any:
        if self.version >= (2, 11):
            return lambda mempool_id=None, include_traces=True: self.segments
        if self.version >= (2, 8):
            return lambda mempool_id=None: self.segments
        return lambda: self.segments


def install_fake_torch(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int] = (2, 6), device_count: int = 1
) -> FakeTorch:
    """Put a fake in the place of torch for one test."""
    fake = FakeTorch(version, device_count)
    # Backwards, since that is undone backwards: modules are taken down in the order of sys.modules,
    # and in another order torch's own finalizers complain at the end of the test run.
    for name in reversed([name for name in sys.modules if name.partition(".")[0] == "torch"]):
        monkeypatch.delitem(sys.modules, name)
    for name, module in fake.modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return fake

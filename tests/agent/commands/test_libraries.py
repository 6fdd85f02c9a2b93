"""What libraries keep is let go of where there is any, and not under a captured graph."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import install_fake_torch, nested_stats
from vramscope.commands.call import Call
from vramscope.commands.libraries import library_handlers
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import VramscopeError

NAMES = ["clear_plan_caches", "clear_cublas_workspaces"]


class CUDAGraph:
    """Stands for PyTorch's; a class of Python's, as that is."""


class PlanCache:
    """Of one device."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @property
    def size(self) -> int:
        return self.job.plans

    def clear(self) -> None:
        self.job.clear("cufft")


class Job:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install_fake_torch(monkeypatch)
        self.device = FakeDevice()
        self.cleared: list[Any] = []
        self.plans = 3
        c_module: Any = sys.modules["torch"]._C
        torch: Any = sys.modules["torch"]
        torch.backends = SimpleNamespace(cuda=SimpleNamespace(cufft_plan_cache=[PlanCache(self)]))
        c_module._cuda_clearCublasWorkspaces = lambda: self.clear("cublas")
        cuda: Any = sys.modules["torch.cuda"]
        cuda.CUDAGraph = CUDAGraph
        self.device.stats = nested_stats(reserved_bytes=900, allocated_bytes=800)
        self.device.memory.process_bytes = 5000

    def clear(self, what: Any) -> None:
        self.cleared.append(what)
        self.device.stats = nested_stats(reserved_bytes=900, allocated_bytes=500)
        self.device.memory.process_bytes = 4000

    def run(self, name: str) -> Receipt:
        receipt = library_handlers(self.device)[name](Call())
        assert isinstance(receipt, Receipt)
        return receipt


def test_plans_are_forgotten_and_what_that_freed_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(monkeypatch)
    receipt = job.run("clear_plan_caches")
    assert job.cleared == ["cufft"]
    assert receipt.result == {"plans": 3, "freed_bytes": 1300}
    assert receipt.message == (
        "Forgot 3 plans of cuFFT; allocated fell by 300 B, which stays cached; the process holds "
        "1000 B less of the device."
    )


def test_workspaces_go_and_what_that_freed_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(monkeypatch)
    receipt = job.run("clear_cublas_workspaces")
    assert job.cleared == ["cublas"]
    assert (receipt.before["allocated_bytes"], receipt.after["allocated_bytes"]) == (800, 500)
    assert receipt.result == {"freed_bytes": 1300}


@pytest.mark.parametrize("name", NAMES)
def test_a_captured_graph_may_use_them(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    job = Job(monkeypatch)
    graph = CUDAGraph()
    with pytest.raises(VramscopeError, match="has captured CUDA graphs, which may use"):
        job.run(name)
    assert job.cleared == []
    del graph
    assert job.run(name).state == "done"


def test_without_plans_no_graph_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(monkeypatch)
    job.plans = 0
    graph = CUDAGraph()
    assert job.run("clear_plan_caches").state == "done"
    del graph


@pytest.mark.parametrize("name", NAMES)
def test_where_there_is_nothing_to_act_on_the_answer_says_why(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    job = Job(monkeypatch)
    c_module: Any = sys.modules["torch"]._C
    del sys.modules["torch"].backends.cuda.cufft_plan_cache
    del c_module._cuda_clearCublasWorkspaces
    with pytest.raises(VramscopeError, match="this torch"):
        job.run(name)
    cuda: Any = sys.modules["torch.cuda"]
    cuda.is_initialized = lambda: False
    with pytest.raises(VramscopeError, match="has not used CUDA"):
        job.run(name)

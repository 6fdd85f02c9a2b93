"""What frameworks log of memory is what they would log without the agent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.counted_cuda import CountedCuda, Job, flat
from vramscope.peaks.torch_functions import TorchFunctions, torch_functions
from vramscope_analysis.allocator import CachingAllocator

pytestmark = pytest.mark.torch


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> CountedCuda:
    return CountedCuda(monkeypatch)


@pytest.fixture
def functions(cuda: CountedCuda) -> TorchFunctions:
    functions = torch_functions(cuda.c_module)
    functions.install()
    return functions


def test_a_transformers_trainer_measures_the_same(
    cuda: CountedCuda, functions: TorchFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    trainer_utils: Any = pytest.importorskip("transformers.trainer_utils")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)

    def device_index(device: Any, optional: bool = False) -> int:
        del device, optional
        return 0

    monkeypatch.setattr(torch.cuda.memory, "_get_device_index", device_index)

    def train(tracker: Any, *, is_watched: bool) -> dict[str, Any]:
        cuda.models[0] = CachingAllocator(1 << 30, version=(2, 11))
        job = Job(cuda, seed=3)
        job.peak(1 << 26)
        tracker.start()  # looks for the name of this function
        job.peak(1 << 27)
        for _ in range(20):
            job.work()
            if is_watched:
                functions.device(0).take()
        tracker.stop("train")
        found: dict[str, Any] = tracker.gpu["train"]
        return found

    watched = train(trainer_utils.TrainerMemoryTracker(), is_watched=True)
    functions.leave()
    assert cuda.models[0].memory_stats()["allocated_bytes"]["all"]["peak"] < 1 << 27
    plain = train(trainer_utils.TrainerMemoryTracker(), is_watched=False)
    assert watched == plain
    assert watched["peaked"] > 0


def test_lightning_logs_the_same_of_a_device(cuda: CountedCuda, functions: TorchFunctions) -> None:
    accelerators: Any = pytest.importorskip("lightning.pytorch.accelerators.cuda")
    job = Job(cuda)
    job.peak(1 << 26)
    functions.device(0).take()
    job.peak(1 << 22)
    logged = accelerators.CUDAAccelerator().get_device_stats(0)
    assert dict(logged) == flat(job.twin.memory_stats())

"""Every way in which a job asks for its peaks gives what an untouched twin's allocator says."""

from __future__ import annotations

import os
import random
import types
from typing import Any

import pytest

from tests.support.counted_cuda import CountedCuda, Job, NativeFunction, flat
from vramscope.peaks import torch_functions as module
from vramscope.peaks.torch_functions import TorchFunctions, torch_functions

pytestmark = pytest.mark.torch


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> CountedCuda:
    return CountedCuda(monkeypatch, devices=2)


@pytest.fixture
def functions(cuda: CountedCuda) -> TorchFunctions:
    functions = torch_functions(cuda.c_module)
    assert functions.refusal() is None
    functions.install()
    return functions


@pytest.mark.filterwarnings("ignore:torch.cuda.reset_max_memory")
def test_what_the_job_asks_equals_the_twin_over_random_steps_and_resets(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    import torch

    job = Job(cuda)
    rng = random.Random(5)
    memory: Any = torch.cuda.memory
    for _ in range(300):
        for _ in range(3):
            job.work()
            action = rng.random()
            if action < 0.1:
                torch.cuda.reset_peak_memory_stats(0)
                job.twin.reset_peaks()
            elif action < 0.15:
                torch.cuda.reset_accumulated_memory_stats(0)
                job.twin.reset_accumulated()
            elif action < 0.2:
                torch.cuda.reset_max_memory_allocated(0)
                job.twin.reset_peaks()
        twin = job.twin.memory_stats()
        assert dict(torch.cuda.memory_stats(0)) == flat(twin)
        assert memory.memory_stats_as_nested_dict(0) == twin
        assert torch.cuda.max_memory_allocated(0) == twin["allocated_bytes"]["all"]["peak"]
        assert torch.cuda.max_memory_reserved(0) == twin["reserved_bytes"]["all"]["peak"]
        functions.device(0).take()
        assert dict(torch.cuda.memory_stats(0)) == flat(twin)


def test_the_summary_is_the_twins(
    cuda: CountedCuda, functions: TorchFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    job = Job(cuda)
    job.peak(1 << 26)
    functions.device(0).take()
    job.peak(1 << 22)
    watched = torch.cuda.memory_summary(0)
    monkeypatch.setattr(cuda, "models", [job.twin])
    functions.leave()
    monkeypatch.setattr(torch._C, "_cuda_memoryStats", cuda.originals["_cuda_memoryStats"])
    assert watched == torch.cuda.memory_summary(0)


def test_the_accelerators_functions_are_the_jobs_too(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    import torch

    accelerator: Any = getattr(torch, "accelerator", None)
    if not hasattr(accelerator, "max_memory_allocated"):
        pytest.skip("this torch has no torch.accelerator with memory functions")
    job = Job(cuda)
    job.peak(1 << 26)
    functions.device(0).take()
    assert accelerator.max_memory_allocated(0) == 1 << 26
    assert dict(accelerator.memory_stats(0)) == flat(job.twin.memory_stats())
    accelerator.reset_peak_memory_stats(0)
    assert accelerator.max_memory_allocated(0) == torch.cuda.max_memory_allocated(0) == 0
    job.peak(1 << 20)
    functions.device(0).take()
    accelerator.reset_accumulated_memory_stats(0)
    interval = functions.device(0).take()
    assert interval is not None
    assert interval.allocated_total_bytes == (1 << 26) + (1 << 20)


def test_other_devices_are_untouched(cuda: CountedCuda, functions: TorchFunctions) -> None:
    import torch

    job, other = Job(cuda, 0), Job(cuda, 1)
    job.peak(1 << 24)
    other.peak(1 << 25)
    functions.device(0).take()
    assert cuda.models[1].memory_stats() == other.twin.memory_stats()
    assert torch.cuda.max_memory_allocated(1) == 1 << 25
    torch.cuda.reset_peak_memory_stats(1)
    assert torch.cuda.max_memory_allocated(1) == 0
    assert torch.cuda.max_memory_allocated(0) == 1 << 24


def test_a_wrong_device_raises_what_pytorch_raises(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    functions.device(0).take()
    for name, own in cuda.originals.items():
        for args in ((9,), (), (0, 0)):
            with pytest.raises((RuntimeError, TypeError)) as plain:
                own(*args)
            with pytest.raises((RuntimeError, TypeError)) as watched:
                getattr(cuda.c_module, name)(*args)
            assert repr(watched.value) == repr(plain.value)


# ------------------------------------------------------------------------------ leaving again


def test_with_nothing_kept_the_originals_come_back_at_once(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    functions.device(0).take()
    assert not cuda.is_untouched()
    functions.leave()
    assert cuda.is_untouched()
    assert not functions.is_installed


def test_a_kept_peak_is_told_until_the_job_resets(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    import torch

    job = Job(cuda)
    job.peak(1 << 26)
    functions.device(0).take()
    functions.leave()
    assert torch.cuda.max_memory_allocated(0) == 1 << 26
    job.peak(1 << 22)
    assert dict(torch.cuda.memory_stats(0)) == flat(job.twin.memory_stats())
    assert not cuda.is_untouched()
    torch.cuda.reset_peak_memory_stats(0)
    job.twin.reset_peaks()
    assert cuda.is_untouched()
    assert dict(torch.cuda.memory_stats(0)) == flat(job.twin.memory_stats())


def test_a_kept_peak_that_is_reached_again_is_let_go(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    import torch

    job = Job(cuda)
    job.peak(1 << 21)
    functions.device(0).take()
    functions.leave()
    assert torch.cuda.max_memory_allocated(0) == 1 << 21
    assert not cuda.is_untouched()
    job.peak(1 << 21)  # in every counter
    assert dict(torch.cuda.memory_stats(0)) == flat(job.twin.memory_stats())
    assert cuda.is_untouched()


def test_one_that_comes_later_takes_over_what_is_kept(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    import torch

    job = Job(cuda)
    for _ in range(50):
        job.peak(1 << 26)
        functions.device(0).take()
        functions.leave()
        again = torch_functions(cuda.c_module)
        assert again.refusal() is None
        again.install()
        again.device(0).take()
        assert torch.cuda.max_memory_allocated(0) == 1 << 26
    wrapper: Any = cuda.c_module._cuda_memoryStats
    assert wrapper.__wrapped__ is cuda.originals["_cuda_memoryStats"]


# ------------------------------------------------------------------------------ other wrappers


def test_it_keeps_away_from_functions_that_somebody_else_has_wrapped(
    cuda: CountedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cuda.originals["_cuda_memoryStats"]
    monkeypatch.setattr(cuda.c_module, "_cuda_memoryStats", lambda index: own(index))
    reason = torch_functions(cuda.c_module).refusal()
    assert reason == "somebody else has replaced torch._C._cuda_memoryStats"


def test_it_needs_a_function_that_resets(
    cuda: CountedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(cuda.c_module, "_cuda_resetPeakMemoryStats")
    reason = torch_functions(cuda.c_module).refusal()
    assert reason == "this PyTorch has no torch._C._cuda_resetPeakMemoryStats"


def test_a_release_without_accelerator_functions_is_fine(
    cuda: CountedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in cuda.originals:
        if name.startswith("_accelerator"):
            monkeypatch.delattr(cuda.c_module, name)
    functions = torch_functions(cuda.c_module)
    assert functions.refusal() is None
    functions.install()
    functions.device(0).take()
    functions.leave()
    assert not any(hasattr(cuda.c_module, n) for n in cuda.originals if n.startswith("_acc"))


def test_somebody_who_puts_the_original_back_is_noticed_at_the_next_step(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    import torch

    job = Job(cuda)
    job.peak(1 << 26)
    functions.device(0).take()
    cuda.c_module._cuda_memoryStats = cuda.originals["_cuda_memoryStats"]
    assert torch.cuda.max_memory_allocated(0) == 0  # nothing of ours is asked here
    assert functions.refusal() is None
    functions.install()
    assert torch.cuda.max_memory_allocated(0) == 1 << 26


def test_under_somebody_elses_wrapper_ours_only_passes_on(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    ours: Any = cuda.c_module._cuda_memoryStats
    cuda.c_module._cuda_memoryStats = lambda index: ours(index)
    assert functions.refusal() is None  # it comes to ours
    functions.leave()
    assert functions.refusal() == "somebody else has replaced torch._C._cuda_memoryStats"
    job = Job(cuda)
    job.peak(1 << 20)
    assert cuda.c_module._cuda_memoryStats(0) == job.twin.memory_stats()
    assert cuda.c_module._cuda_resetPeakMemoryStats is cuda.originals["_cuda_resetPeakMemoryStats"]


def test_in_a_forked_child_everything_only_passes_on(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    job = Job(cuda)
    job.peak(1 << 26)
    peaks = functions.device(0)
    peaks.take()
    assert peaks._resetting.acquire()  # as by another thread, at the fork
    try:
        pid = os.fork()
        if pid == 0:
            functions.forget_after_fork()
            cuda.c_module._cuda_resetPeakMemoryStats(0)
            is_plain = cuda.c_module._cuda_memoryStats(0) == cuda.models[0].memory_stats()
            os._exit(0 if is_plain else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        peaks._resetting.release()
    assert cuda.c_module._cuda_memoryStats(0) == job.twin.memory_stats()


def test_pytorchs_own_functions_are_recognised_as_such() -> None:
    import torch

    assert (NativeFunction,) != module.NATIVE_TYPES
    own: Any = torch._C
    assert isinstance(own._accelerator_getDeviceStats, module.NATIVE_TYPES)
    assert isinstance(own._accelerator_getDeviceStats, types.BuiltinFunctionType)


def test_compiled_code_calls_the_wrappers_and_does_not_trace_into_them(
    cuda: CountedCuda, functions: TorchFunctions
) -> None:
    for name in cuda.originals:
        assert getattr(cuda.c_module, name)._torchdynamo_disable is True

"""Peaks of a CUDA device are reset where that is safe, and known to be passive where it is not."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.counted_cuda import CountedCuda
from tests.support.fake_clock import FakeClock
from tests.support.fake_nvml import FakeNvml
from tests.support.fake_torch import install_fake_torch, nested_stats
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.devices.cuda import CudaDevice
from vramscope.notices import Notices
from vramscope.peaks.cuda_peaks import WRAPPED_INTERVAL_NS, CudaPeaks
from vramscope.peaks.peak_counters import Interval, PeakCounters
from vramscope_protocol.columns import UNKNOWN

pytestmark = pytest.mark.torch


class Rig:
    """A device over a torch whose allocators are models."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        self.cuda = CountedCuda(monkeypatch, devices=2)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: object())
        monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: "native")
        self.notices = Notices()
        library = NvmlLibrary(self.notices, lambda: FakeNvml({"uuid": "GPU-uuid-0"}))
        self.device = CudaDevice(NvmlMonitor(library, FakeClock(), {}), self.notices)
        self.device.follow_current_device()
        self.peaks: PeakCounters = CudaPeaks(self.device, self.notices)

    def peak(self, size_bytes: int, index: int = 0) -> None:
        model = self.cuda.models[index]
        model.free(model.malloc(size_bytes))

    def take(self) -> Interval:
        interval = self.peaks.take()
        assert interval is not None
        return interval

    def allocated_peak(self) -> int:
        return self.take().peaks[0]

    def real_peak(self, index: int = 0) -> int:
        return int(self.cuda.models[index].memory_stats()["allocated_bytes"]["all"]["peak"])


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Any:
    rig = Rig(monkeypatch)
    yield rig
    rig.peaks.remove()
    rig.device.remove()


def test_each_interval_has_its_peak_and_the_job_its_own(rig: Rig) -> None:
    rig.take()
    for size_bytes in (1 << 24, 1 << 20, 1 << 22):
        rig.peak(size_bytes)
        interval = rig.take()
        assert interval.peaks[0] == size_bytes
        assert interval.stats == rig.device.memory_stats()
        assert interval.stats is not None
        assert interval.stats["allocated_bytes"]["all"]["peak"] == 1 << 24
    assert rig.notices.texts() == []


def test_the_samplers_reads_are_the_jobs_view(rig: Rig) -> None:
    rig.peak(1 << 24)
    rig.take()
    stats = rig.device.memory_stats()
    assert stats is not None
    assert stats["allocated_bytes"]["all"]["peak"] == 1 << 24
    assert rig.real_peak() == 0


def test_the_command_that_resets_peaks_is_a_reset_of_the_job(rig: Rig) -> None:
    rig.take()
    rig.peak(1 << 24)
    rig.device.reset_peaks()
    stats = rig.device.memory_stats()
    assert stats is not None
    assert stats["allocated_bytes"]["all"]["peak"] == 0
    assert rig.allocated_peak() == 1 << 24


def test_without_cuda_there_is_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert rig.take() == Interval(None)
    assert rig.peaks.take(at_step_end=False) is None
    assert rig.cuda.is_untouched()


def is_passive(rig: Rig, reason: str) -> bool:
    """Whether nothing is reset now, and a note says so."""
    rig.peak(1 << 27)
    real = rig.real_peak()
    assert rig.peaks.take(at_step_end=False) is None
    assert rig.take().stats is not None
    assert rig.real_peak() == real
    return any("passive" in text and reason in text for text in rig.notices.texts())


def test_while_a_graph_is_captured_nothing_is_reset(rig: Rig) -> None:
    rig.take()
    rig.cuda.capturing = True
    assert is_passive(rig, "a CUDA graph is being captured")
    rig.cuda.capturing = False
    rig.take()
    assert rig.notices.texts() == []
    rig.peak(1 << 20)
    assert rig.allocated_peak() == 1 << 20


def test_inside_a_backward_and_while_compiling_nothing_is_reset(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    with monkeypatch.context() as patch:
        patch.setattr(torch._C, "_current_graph_task_id", lambda: 3)
        assert is_passive(rig, "the backward pass is running")
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert is_passive(rig, "torch.compile is tracing")


def test_threads_on_several_devices_are_passive(rig: Rig) -> None:
    rig.take()
    rig.cuda.current_device = 1
    assert is_passive(rig, "several devices")
    assert rig.real_peak(1) == 0


def move(rig: Rig, index: int) -> None:
    """Train on another device for so long that the agent follows."""
    rig.cuda.current_device = index
    for _ in range(8):
        rig.device.follow_current_device()
    assert rig.device.index == index


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_job_that_moves_to_another_device_has_known_peaks_again_after_a_step(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, is_wrapped: bool
) -> None:
    from vramscope.peaks.peak_meter import PeakMeter

    if is_wrapped:
        own = rig.cuda.originals["_cuda_memoryStats"]
        monkeypatch.setattr(rig.cuda.c_module, "_cuda_memoryStats", lambda index: own(index))
    meter = PeakMeter(rig.peaks)
    meter.mark(at_step_end=True)
    rig.peak(1 << 20)
    meter.mark(at_step_end=True)
    rig.peak(1 << 25, index=1)
    for index in (1, 0):
        move(rig, index)
        assert meter.mark() is None
        moved = meter.open()
        meter.mark(at_step_end=True)
        meter.close(moved)
        assert (moved.allocated_peak_bytes, moved.volume_bytes) == (UNKNOWN, UNKNOWN)
        after = meter.open()
        rig.peak(1 << 26, index=index)
        meter.mark(at_step_end=True)
        # Without resets it is below what was there before.
        peak_bytes = UNKNOWN if is_wrapped and index == 0 else 1 << 26
        assert (after.allocated_peak_bytes, after.volume_bytes) == (peak_bytes, 1 << 26)
        rig.peak(1 << 27, index=1)
        rig.peak(1 << 28, index=0)


def test_functions_are_looked_at_again_after_a_while_only(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who puts an original back is noticed by the first step after that."""
    now_ns = [0]
    peaks = CudaPeaks(rig.device, rig.notices, clock_ns=lambda: now_ns[0])
    peaks.take()
    wrapped = rig.cuda.c_module._cuda_memoryStats
    rig.cuda.c_module._cuda_memoryStats = rig.cuda.originals["_cuda_memoryStats"]
    for size_bytes in (1 << 24, 1 << 20):
        rig.peak(size_bytes)
        now_ns[0] += WRAPPED_INTERVAL_NS // 3
        interval = peaks.take()
        assert interval is not None
        assert interval.peaks[0] == size_bytes
    assert rig.cuda.c_module._cuda_memoryStats is not wrapped
    now_ns[0] += WRAPPED_INTERVAL_NS // 2
    peaks.take()
    assert rig.cuda.c_module._cuda_memoryStats is wrapped
    peaks.remove()


def test_threads_that_take_turns_are_passive_and_one_that_goes_on_is_not(rig: Rig) -> None:
    rig.take()
    taken: list[Interval] = []

    def end_steps() -> None:
        for _ in range(3):
            rig.peak(1 << 20)
            taken.append(rig.take())

    thread = threading.Thread(target=end_steps)
    thread.start()
    thread.join(30)
    # The first is known because the counters were reset before, and does not reset itself.
    assert [interval.peaks[0] for interval in taken] == [1 << 20, UNKNOWN, 1 << 20]
    assert rig.real_peak() == 0


def test_an_allocator_in_python_makes_it_passive_for_good(rig: Rig) -> None:
    rig.take()
    rig.peak(1 << 24)
    rig.take()
    rig.device._scopes.has_custom_allocator = True
    assert is_passive(rig, "a pool allocates through Python code")
    stats = rig.device.memory_stats()
    assert stats is not None
    assert stats["allocated_bytes"]["all"]["peak"] == 1 << 27


def test_somebody_elses_wrapper_makes_it_passive_and_stays(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = rig.cuda.originals["_cuda_memoryStats"]

    def theirs(index: int) -> Any:
        return own(index)

    monkeypatch.setattr(rig.cuda.c_module, "_cuda_memoryStats", theirs)
    assert is_passive(rig, "somebody else has replaced torch._C._cuda_memoryStats")
    rig.peak(1 << 28)
    assert rig.allocated_peak() == 1 << 28
    rig.peaks.remove()
    assert rig.cuda.c_module._cuda_memoryStats is theirs
    name = "_cuda_resetPeakMemoryStats"
    assert getattr(rig.cuda.c_module, name) is rig.cuda.originals[name]


def test_counters_that_fail_leave_a_row_without_counters(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig.cuda, "models", [])
    assert rig.take() == Interval(None)
    assert any("no counters" in text for text in rig.notices.texts())
    assert rig.take() == Interval(None)


def test_another_thread_that_resets_is_not_waited_for(rig: Rig) -> None:
    rig.take()
    rig.peak(1 << 20)
    is_held, is_over = threading.Event(), threading.Event()
    from vramscope.peaks import torch_functions

    functions = torch_functions._of_process
    assert functions is not None

    def hold() -> None:
        with functions.device(0)._resetting:
            is_held.set()
            is_over.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(30)
    assert rig.peaks.take(at_step_end=False) is None
    interval = rig.take()
    is_over.set()
    thread.join(30)
    assert interval.peaks[0] == UNKNOWN
    assert interval.stats is not None


def test_at_the_end_the_jobs_peak_outlives_the_agent(rig: Rig) -> None:
    import torch

    rig.peak(1 << 24)
    rig.take()
    rig.peaks.remove()
    assert torch.cuda.max_memory_allocated(0) == 1 << 24
    torch.cuda.reset_peak_memory_stats(0)
    assert rig.cuda.is_untouched()
    assert torch.cuda.max_memory_allocated(0) == 0


def test_in_a_forked_child_nothing_is_followed(rig: Rig) -> None:
    rig.peak(1 << 24)
    rig.take()
    rig.peaks.forget_after_fork()
    stats: Any = rig.cuda.c_module._cuda_memoryStats(0)
    assert stats["allocated_bytes"]["all"]["peak"] == 0


def test_while_cuda_is_not_up_another_backend_tells_the_counters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = install_fake_torch(monkeypatch, (2, 11))
    fake.initialized = False
    notices = Notices()
    library = NvmlLibrary(notices, lambda: FakeNvml())
    device = CudaDevice(NvmlMonitor(library, FakeClock(), {}), notices)
    stats = nested_stats(allocated_bytes=5)
    peaks = CudaPeaks(device, notices, without_cuda=lambda: stats)
    interval = peaks.take()
    assert interval is not None
    assert interval.stats is stats
    assert peaks.take(at_step_end=False) is None
    without = CudaPeaks(device, notices).take()
    assert without is not None
    assert without.stats is None

"""The CUDA device: asks nothing that could start CUDA, and follows the job."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.fake_nvml import FakeNvml
from tests.support.fake_torch import FakeTorch, install_fake_torch, nested_stats
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.devices.cuda import CudaDevice
from vramscope.devices.device import Device, DeviceMemory
from vramscope.notices import Notices
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import DeviceInfo


class Rig:
    """A device over fakes, two GPUs."""

    def __init__(self, local_rank: int = 0, gpus: int = 2) -> None:
        self.notices = Notices()
        self.nvml = FakeNvml(*({"uuid": f"GPU-uuid-{each}"} for each in range(gpus)))
        library = NvmlLibrary(self.notices, lambda: self.nvml)
        self.changes: list[DeviceInfo] = []
        self.device = CudaDevice(
            NvmlMonitor(library, FakeClock(), {}),
            self.notices,
            local_rank=local_rank,
            on_change=self.changes.append,
        )


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    return install_fake_torch(monkeypatch, (2, 11), device_count=2)


def on_agent_thread(call: Any) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()), name="vramscope-test")
    thread.start()
    thread.join(10)
    return results[0]


def test_without_torch_there_are_no_counters_and_torch_stays_out(
    fake: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in fake.modules:
        monkeypatch.delitem(sys.modules, name)
    device: Device = Rig().device
    assert device.memory_stats() is None
    assert device.busy_reason() is None
    assert device.segments() == []
    assert device.memory_summary() == ""
    device.empty_cache()
    device.reset_peaks()
    assert device.device_memory().total_bytes == 1000
    assert "torch" not in sys.modules


def test_cuda_that_is_not_initialised_is_left_alone(fake: FakeTorch) -> None:
    fake.initialized = False
    rig = Rig()
    assert rig.device.memory_stats() is None
    rig.device.empty_cache()
    rig.device.follow_current_device()
    assert fake.calls == []
    assert rig.notices.texts() == []


def test_the_driver_is_known_before_torch(fake: FakeTorch) -> None:
    rig = Rig(local_rank=1)
    assert rig.device.info == DeviceInfo(index=1, name="")
    rig.device.refresh_info()
    expected = DeviceInfo(index=1, name="Fake GPU", uuid="GPU-uuid-1", total_bytes=1000)
    assert rig.device.info == expected
    assert rig.changes == [expected]
    rig.device.refresh_info()
    assert len(rig.changes) == 1


def test_a_rank_that_sees_only_its_own_device_uses_device_0(fake: FakeTorch) -> None:
    rig = Rig(local_rank=3, gpus=1)
    rig.device.refresh_info()
    assert (rig.device.info.index, rig.device.info.uuid) == (0, "GPU-uuid-0")


def test_before_the_first_step_it_reads_the_device_that_holds_memory(fake: FakeTorch) -> None:
    fake.stats[1] = nested_stats(reserved_bytes=77)
    rig = Rig()
    assert rig.device.memory_stats() is fake.stats[1]
    assert rig.device.device_memory().used_bytes == 300
    assert rig.device.info.index == 1


def test_at_a_step_it_learns_the_training_threads_device_by_uuid(fake: FakeTorch) -> None:
    fake.current_device = 1
    rig = Rig()
    # CUDA and NVML may count devices in another order; the UUID is what counts.
    rig.nvml.devices = ({"uuid": "GPU-uuid-1"}, {"uuid": "GPU-uuid-0"})
    rig.device.follow_current_device()
    rig.device.refresh_info()
    assert (rig.device.info.index, rig.device.info.uuid) == (1, "GPU-uuid-1")
    assert rig.device.memory_stats() is fake.stats[1]


def test_of_threads_on_two_devices_one_is_shown(fake: FakeTorch) -> None:
    rig = Rig()
    for step in range(40):
        fake.current_device = step % 2
        rig.device.follow_current_device()
        rig.device.refresh_info()
    assert rig.device.info.index == 0
    assert len(rig.changes) == 1


def test_a_job_that_moves_to_another_device_is_followed(fake: FakeTorch) -> None:
    rig = Rig()
    rig.device.follow_current_device()
    fake.current_device = 1
    for _ in range(20):
        rig.device.follow_current_device()
    rig.device.refresh_info()
    assert (rig.device.info.index, rig.device.info.uuid) == (1, "GPU-uuid-1")


def test_during_a_capture_nothing_is_asked_of_cuda(fake: FakeTorch) -> None:
    fake.current_device = 1
    fake.capturing = True
    rig = Rig()
    rig.device.follow_current_device()
    rig.device.refresh_info()
    assert rig.device.info.index == 0


def test_the_cap_of_the_process_is_its_limit(fake: FakeTorch) -> None:
    c_module: Any = fake.modules["torch"]._C
    c_module._cuda_getMemoryFraction = lambda index: 0.5
    rig = Rig()
    rig.device.follow_current_device()
    rig.device.refresh_info()
    assert rig.device.info.limit_bytes == 500


def test_where_the_driver_has_no_total_that_of_cuda_counts(fake: FakeTorch) -> None:
    rig = Rig()
    rig.nvml.errors["nvmlDeviceGetMemoryInfo"] = FakeNvml.NVMLError_NotSupported()
    cuda: Any = fake.modules["torch.cuda"]
    cuda.get_device_properties = lambda index: SimpleNamespace(
        uuid=f"uuid-{index}", name="Fake integrated", total_memory=4000, is_integrated=True
    )
    rig.device.refresh_info()
    before = rig.device.info
    assert before.total_bytes is None
    rig.device.follow_current_device()
    assert rig.device.device_memory().total_bytes == UNKNOWN
    assert (rig.device.info.name, rig.device.info.total_bytes) == ("Fake GPU", 4000)
    assert len(rig.notices.texts()) == 1
    assert "shares its memory with the processor" in rig.notices.texts()[0]


def test_another_backend_is_noted(fake: FakeTorch) -> None:
    fake.backend = "cudaMallocAsync"
    rig = Rig()
    rig.device.follow_current_device()
    assert rig.notices.texts() == [
        "the allocator backend is not PyTorch's own: most of its counters stay 0"
    ]


def test_a_pluggable_allocator_is_noted_and_asked_once(fake: FakeTorch) -> None:
    fake.stats = [None, None]
    rig = Rig()
    assert rig.device.memory_stats() is None
    asked = len(fake.calls)
    assert rig.device.memory_stats() is None
    assert len(fake.calls) == asked
    assert rig.device.memory_summary() == ""
    assert rig.notices.texts() == [
        "this allocator has no counters; only the driver's numbers are known"
    ]


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("capturing", True, "a CUDA graph is being captured"),
        ("graph_task", 3, "the backward pass is running"),
        ("compiling", True, "torch.compile is tracing"),
    ],
)
def test_it_is_busy_when_cuda_must_not_be_touched(
    fake: FakeTorch, attribute: str, value: Any, reason: str
) -> None:
    device = Rig().device
    assert device.busy_reason() is None
    setattr(fake, attribute, value)
    assert device.busy_reason() == reason


def test_it_is_busy_inside_a_pool(fake: FakeTorch) -> None:
    device = Rig().device
    device.memory_stats()
    memory: Any = fake.modules["torch.cuda.memory"]
    memory._cuda_beginAllocateToPool(0, (0, 1))
    assert device.busy_reason() == "a memory pool is in use"
    device.remove()
    assert device.busy_reason() is None


def test_an_allocator_in_python_is_read_on_the_training_thread_only(fake: FakeTorch) -> None:
    rig = Rig()
    assert on_agent_thread(rig.device.memory_stats) is not None
    c_module: Any = fake.modules["torch"]._C
    c_module._cuda_customAllocator(1, 2)
    asked = len(fake.calls)
    assert on_agent_thread(rig.device.memory_stats) is None
    assert on_agent_thread(rig.device.memory_summary) == ""
    assert len(fake.calls) == asked
    assert rig.device.memory_stats() is not None
    assert len(rig.notices.texts()) == 1
    rig.device.remove()


def test_segments_are_those_of_this_device_with_the_size_of_a_page(fake: FakeTorch) -> None:
    fake.segments = [
        {"device": 0, "segment_type": "large", "is_expandable": False},
        {"device": 0, "segment_type": "large", "is_expandable": True},
        {"device": 0, "segment_type": "small", "is_expandable": True},
        {"device": 1, "segment_type": "small"},
    ]
    segments = Rig().device.segments()
    assert [segment.get("page_bytes") for segment in segments] == [None, 20 << 20, 2 << 20]


def test_segments_are_not_looked_at_while_that_could_start_or_stop_something(
    fake: FakeTorch,
) -> None:
    device = Rig().device
    assert device.why_no_segments() is None
    fake.initialized = False
    assert device.why_no_segments() == "the job has not used the device yet"
    assert fake.calls == []
    fake.initialized = True
    fake.backend = "cudaMallocAsync"
    assert device.why_no_segments() == "this allocator backend has no segments to show"
    fake.backend = "native"
    torch: Any = fake.modules["torch"]
    torch._C._cuda_customAllocator(1, 2)
    reason = device.why_no_segments()
    assert reason is not None
    assert reason.startswith("a pool allocates through Python code")
    device.remove()


def test_actions_go_to_this_device(fake: FakeTorch) -> None:
    device = Rig(local_rank=1).device
    device.empty_cache()
    device.reset_peaks()
    assert fake.calls == ["empty_cache", ("reset_peaks", 1)]
    assert device.memory_summary() == "summary of device 1"


def test_it_names_the_software_as_far_as_it_is_there(fake: FakeTorch) -> None:
    rig = Rig()
    assert rig.device.software() == {"torch": "2.11.0", "cuda": "12.8"}
    rig.device.refresh_info()
    assert rig.device.software()["driver"] == "580.1"


def test_without_nvml_the_drivers_side_is_unknown(fake: FakeTorch) -> None:
    rig = Rig()
    rig.nvml.errors["nvmlInit"] = FakeNvml.NVMLError_LibraryNotFound("not found")
    assert rig.device.device_memory() == DeviceMemory()
    assert rig.device.info == DeviceInfo(index=0, name="")
    assert rig.device.memory_stats() is not None


class FakeTensor:
    """A tensor on a device, with a storage; lazily cloned ones must not be asked for it."""

    def __init__(self, device: int, *, is_lazy: bool = False) -> None:
        self.device_index = device
        self.is_cuda = device >= 0
        self.is_lazy = is_lazy

    def get_device(self) -> int:
        return self.device_index

    def untyped_storage(self) -> Any:
        assert not self.is_lazy, "asked for its address, it makes the copy"
        return SimpleNamespace(data_ptr=lambda: 4096, nbytes=lambda: 512)


def test_a_storage_is_told_of_tensors_on_this_device_only(
    fake: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Rig(local_rank=1).device
    assert device.storage(FakeTensor(1)) == (4096, 512)
    assert device.storage(FakeTensor(0)) is None
    assert device.storage(FakeTensor(-1)) is None
    c_module = sys.modules["torch"]._C
    monkeypatch.setattr(c_module, "_is_cow_tensor", lambda t: t.is_lazy, raising=False)
    assert device.storage(FakeTensor(1, is_lazy=True)) is None
    assert device.storage(FakeTensor(1)) == (4096, 512)

"""What NVML tells of the memory of processes, and what it does not."""

from __future__ import annotations

from typing import Any

from tests.support.fake_nvml import FakeNvml
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.notices import Notices
from vramscope.processes.gpu_memory import GpuUse, read_gpu_uses, total_bytes


def uses_on(*devices: dict[str, Any], **errors: Exception) -> dict[int, list[GpuUse]] | None:
    """What is read from these devices."""
    nvml = FakeNvml(*devices)
    nvml.errors.update(errors)
    return read_gpu_uses(NvmlLibrary(Notices(), lambda: nvml))


def test_each_process_has_its_memory_on_each_gpu() -> None:
    uses = uses_on(
        {"uuid": "GPU-a", "name": "NVIDIA H200", "processes": [(11, 100), (12, 200)]},
        {"uuid": "GPU-b", "name": "NVIDIA H200", "processes": [(12, 300)]},
    )
    assert uses == {
        11: [GpuUse(0, "GPU-a", "NVIDIA H200", 100)],
        12: [GpuUse(0, "GPU-a", "NVIDIA H200", 200), GpuUse(1, "GPU-b", "NVIDIA H200", 300)],
    }
    assert total_bytes(uses[12]) == 500


def test_one_unknown_part_makes_the_sum_unknown() -> None:
    uses = uses_on(
        {"uuid": "GPU-a", "processes": [(11, 100)]}, {"uuid": "GPU-b", "processes": [(11, None)]}
    )
    assert uses is not None
    assert total_bytes(uses[11]) is None
    assert total_bytes([]) == 0


def test_without_nvml_nothing_is_known() -> None:
    assert uses_on(nvmlInit=FakeNvml.NVMLError_LibraryNotFound()) is None
    assert uses_on(nvmlDeviceGetCount=FakeNvml.NVMLError()) is None


def test_a_driver_that_lists_no_processes_tells_nothing() -> None:
    refused = FakeNvml.NVMLError_NoPermission()
    assert uses_on({"uuid": "a"}, nvmlDeviceGetComputeRunningProcesses=refused) is None


def test_a_driver_without_gpus_tells_that_nobody_uses_one() -> None:
    assert uses_on() == {}
    assert uses_on({"uuid": "a", "processes": []}) == {}


def test_the_slices_of_a_split_gpu_are_added_up() -> None:
    uses = uses_on(
        {
            "uuid": "GPU-a",
            "parts": [
                {"uuid": "MIG-1", "processes": [(11, 100)]},
                {"uuid": "MIG-2", "processes": [(11, 30), (12, 5)]},
            ],
        }
    )
    assert uses is not None
    assert {pid: total_bytes(parts) for pid, parts in uses.items()} == {11: 130, 12: 5}


def test_one_unknown_slice_makes_the_sum_unknown() -> None:
    parts = [
        {"uuid": "MIG-1", "processes": [(11, 100)]},
        {"uuid": "MIG-2", "processes": [(11, None)]},
        {"uuid": "MIG-3", "processes": [(11, 30)]},
    ]
    uses = uses_on({"uuid": "GPU-a", "parts": parts})
    assert uses is not None
    assert total_bytes(uses[11]) is None


def test_a_split_gpu_that_lists_all_itself_is_not_counted_twice() -> None:
    slice_ = {"uuid": "MIG-1", "processes": [(11, 40)]}
    uses = uses_on({"uuid": "GPU-a", "processes": [(11, 100)], "parts": [slice_]})
    assert uses is not None
    assert total_bytes(uses[11]) == 100

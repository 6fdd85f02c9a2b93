"""NVML missing, old, forbidding or failing: an answer each time, never an exception."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.support.fake_nvml import FakeNvml
from vramscope import fork_gate
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.notices import Notices


@pytest.fixture
def notices() -> Notices:
    return Notices()


def test_without_the_package_there_is_a_note_and_no_answer(notices: Notices) -> None:
    def load() -> ModuleType:
        raise ImportError

    library = NvmlLibrary(notices, load)
    assert not library.open()
    assert library.ask("nvmlDeviceGetCount") is None
    assert library.find("nvmlDeviceGetCount") is None
    assert notices.texts() == ["nvidia-ml-py is not installed: device totals are unknown"]
    library.close()


def test_without_a_driver_there_is_a_note_and_it_is_tried_once(notices: Notices) -> None:
    nvml = FakeNvml()
    nvml.errors["nvmlInit"] = FakeNvml.NVMLError_LibraryNotFound("NVML Shared Library Not Found")
    library = NvmlLibrary(notices, lambda: nvml)
    assert not library.open()
    assert not library.open()
    assert nvml.calls == ["nvmlInit"]
    assert notices.texts() == [
        "NVML not found (NVML Shared Library Not Found): device totals are unknown"
    ]


@pytest.mark.parametrize(
    "error",
    [
        FakeNvml.NVMLError_NotSupported,
        FakeNvml.NVMLError_FunctionNotFound,
        FakeNvml.NVMLError_NoPermission,
        FakeNvml.NVMLLibraryMismatchError,
    ],
)
def test_what_is_not_supported_is_not_asked_again(notices: Notices, error: type[Exception]) -> None:
    nvml = FakeNvml({"uuid": "GPU-1"})
    library = NvmlLibrary(notices, lambda: nvml)
    assert library.open()
    nvml.errors["nvmlDeviceGetPowerUsage"] = error()
    assert library.ask("nvmlDeviceGetPowerUsage", {}) is None
    del nvml.errors["nvmlDeviceGetPowerUsage"]
    assert library.ask("nvmlDeviceGetPowerUsage", {}) is None
    assert nvml.calls.count("nvmlDeviceGetPowerUsage") == 1


def test_a_driver_replaced_under_the_job_is_said_to_be_that(notices: Notices) -> None:
    replaced = FakeNvml.NVMLError_LibRmVersionMismatch("Driver/library version mismatch")
    nvml = FakeNvml({"uuid": "GPU-1"})
    library = NvmlLibrary(notices, lambda: nvml)
    library.open()
    nvml.errors["nvmlDeviceGetPowerUsage"] = replaced
    assert library.ask("nvmlDeviceGetPowerUsage", {}) is None
    said = notices.texts()
    assert "until the machine is started again" in said[0]
    assert "lost" not in said[0]
    at_start, nvml = Notices(), FakeNvml()
    nvml.errors["nvmlInit"] = replaced
    assert not NvmlLibrary(at_start, lambda: nvml).open()
    assert at_start.texts() == said


def test_what_one_device_refused_another_one_is_asked(notices: Notices) -> None:
    nvml = FakeNvml({"uuid": "GPU-1"})
    library = NvmlLibrary(notices, lambda: nvml)
    library.open()
    nvml.errors["nvmlDeviceGetPowerUsage"] = FakeNvml.NVMLError_NotSupported()
    assert library.ask("nvmlDeviceGetPowerUsage", {}) is None
    del nvml.errors["nvmlDeviceGetPowerUsage"]
    library.forget_refusals()
    assert library.ask("nvmlDeviceGetPowerUsage", {}) == 250_000


def test_no_child_is_forked_in_the_middle_of_a_call(notices: Notices) -> None:
    inside: list[int] = []

    class WatchedNvml(FakeNvml):
        def __getattr__(self, name: str) -> Any:
            call = super().__getattr__(name)

            def watched(*arguments: Any) -> Any:
                inside.append(len(fork_gate._inside))
                return call(*arguments)

            return watched

    def load() -> ModuleType:
        inside.append(len(fork_gate._inside))
        return WatchedNvml({"uuid": "GPU-1"})

    library = NvmlLibrary(notices, load)
    library.open()
    library.ask("nvmlDeviceGetCount")
    assert inside == [1, 1, 1]
    assert not fork_gate._inside


def test_a_passing_failure_is_asked_again(notices: Notices) -> None:
    nvml = FakeNvml({"uuid": "GPU-1"})
    library = NvmlLibrary(notices, lambda: nvml)
    library.open()
    nvml.errors["nvmlDeviceGetPowerUsage"] = FakeNvml.NVMLError_GpuIsLost()
    assert library.ask("nvmlDeviceGetPowerUsage", {}) is None
    assert notices.texts() == ["the driver reports that the device is lost"]
    del nvml.errors["nvmlDeviceGetPowerUsage"]
    assert library.ask("nvmlDeviceGetPowerUsage", {}) == 250_000


def test_one_option_that_is_not_supported_does_not_bar_the_function(notices: Notices) -> None:
    nvml = FakeNvml()
    library = NvmlLibrary(notices, lambda: nvml)
    library.open()
    device = {"has_v2": False}
    assert library.ask("nvmlDeviceGetMemoryInfo", device, version=2) is None
    assert library.ask("nvmlDeviceGetMemoryInfo", device).total == 1000


def test_looking_up_remembers_no_refusal(notices: Notices) -> None:
    nvml = FakeNvml({"uuid": "GPU-1"})
    library = NvmlLibrary(notices, lambda: nvml)
    library.open()
    nvml.errors["nvmlDeviceGetHandleByIndex"] = FakeNvml.NVMLError_NoPermission()
    assert library.find("nvmlDeviceGetHandleByIndex", 0) is None
    del nvml.errors["nvmlDeviceGetHandleByIndex"]
    assert library.find("nvmlDeviceGetHandleByIndex", 0) is not None


def test_a_function_that_this_version_lacks_is_unknown(notices: Notices) -> None:
    library = NvmlLibrary(notices, FakeNvml)
    library.open()
    assert library.ask("nvmlDeviceGetNothing") is None
    assert library.constant("NVML_NOTHING") is None


def test_closed_it_answers_nothing(notices: Notices) -> None:
    nvml = FakeNvml({"uuid": "GPU-1"})
    library = NvmlLibrary(notices, lambda: nvml)
    library.open()
    library.close()
    assert nvml.calls == ["nvmlInit", "nvmlShutdown"]
    assert library.ask("nvmlDeviceGetCount") is None


def test_the_real_library_of_this_machine_opens_or_leaves_a_note(notices: Notices) -> None:
    library = NvmlLibrary(notices)
    assert library.open() == (notices.texts() == [])
    library.close()

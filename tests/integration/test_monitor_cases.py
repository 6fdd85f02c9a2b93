"""How a monitor goes wrong by itself: the wrong card, numbers that are none, a driver that fails.

Each job runs under a driver that does this, and what a server is told must be true or unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_machine import CUDA, driver_environment, last_device, start_watched
from tests.support.fake_server import FakeServer
from tests.support.job_process import finish, foreign_lines
from tests.support.same_job import write_script
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import DeviceInfo, Goodbye

ALL_BITS = (1 << 64) - 1
THREE = [
    {"uuid": "GPU-a", "name": "A", "total": 1000},
    {"uuid": "GPU-b", "name": "B", "total": 2000},
    {
        "uuid": "GPU-c",
        "name": "C",
        "total": 3000,
        "parts": [{"uuid": "MIG-c1", "name": "C slice", "total": 300}],
    },
]
NOT_SUPPORTED = "NVMLError_NotSupported"

STEPS = """
import time, vramscope
for number in range(18):
    vramscope.step()
    time.sleep(0.1)
"""

# The order of CUDA is another one than that of the driver.
TORCH = f"""{CUDA}
fake = fake_cuda(2)
fake.stats = [nested_stats(reserved_bytes=77), nested_stats()]
sys.modules["torch.cuda"].get_device_properties = lambda index: SimpleNamespace(
    uuid=["b", "a"][index], name="as CUDA says", total_memory=7000, is_integrated=False)
{STEPS}
""".replace("import os,", "from types import SimpleNamespace\nimport os,")


class Seen:
    """What a server was told by one job that ran to its end."""

    def __init__(
        self,
        folder: Path,
        script: str,
        devices: list[dict[str, Any]],
        errors: Mapping[str, str] | None = None,
        **environment: str,
    ) -> None:
        with FakeServer() as server:
            found = driver_environment(devices, errors or {}, **environment)
            job = start_watched(write_script(folder, script), server, found)
            code, output, written = finish(job)
            assert (code, output, foreign_lines(written)) == (0, "", [])
            assert len(server.of_type(Goodbye)) == 1
            assert [row["step"] for row in server.rows("step")] == list(range(1, 19))
            self.device = last_device(server) or DeviceInfo(index=-1, name="")
            self.samples = list(server.rows("sample"))
            status = server.status
        assert status is not None
        assert status.guard_errors == 0
        self.notes = " | ".join(status.notes)

    def last(self, *names: str) -> list[int]:
        """The last values of some of the driver's numbers."""
        return [self.samples[-1][f"device.{name}"] for name in names]


@pytest.mark.parametrize(
    ("visible", "uuid", "total"),
    [
        ("2", "MIG-c1", 300),
        ("1,0", "GPU-b", 2000),
        ("GPU-b", "GPU-b", 2000),
        ("MIG-c1", "MIG-c1", 300),
        ("", "", None),
    ],
)
def test_the_card_shown_is_the_one_that_the_job_may_see(
    visible: str, uuid: str, total: int | None, tmp_path: Path
) -> None:
    seen = Seen(tmp_path, STEPS, THREE, CUDA_VISIBLE_DEVICES=visible)
    assert (seen.device.uuid, seen.device.total_bytes) == (uuid, total)
    assert seen.last("total_bytes") == [UNKNOWN if total is None else total]


def test_cuda_and_the_driver_may_count_cards_in_another_order(tmp_path: Path) -> None:
    seen = Seen(tmp_path, TORCH, THREE[:2])
    assert (seen.device.index, seen.device.uuid, seen.device.total_bytes) == (0, "GPU-b", 2000)
    assert seen.last("total_bytes") == [2000]


def test_memory_of_processes_that_is_not_available_is_no_number(tmp_path: Path) -> None:
    processes = tmp_path / "processes" / "GPU-b"
    processes.mkdir(parents=True)
    script = f"import os\nopen(f'{processes}/{{os.getpid()}}', 'w').write('{ALL_BITS}')\n{TORCH}"
    seen = Seen(tmp_path, script, THREE[:2], FAKE_NVML_PROCESSES=str(tmp_path / "processes"))
    assert seen.last("process_bytes") == [UNKNOWN]
    assert seen.last("total_bytes", "used_bytes") == [2000, 300]
    assert seen.samples[-1]["reserved_bytes.all.current"] == 77


@pytest.mark.parametrize(
    "memory",
    [{"errors": {"nvmlDeviceGetMemoryInfo": NOT_SUPPORTED}}, {"total": 0, "used": 0, "free": 0}],
)
def test_a_card_that_shares_the_memory_of_the_processor(
    memory: dict[str, Any], tmp_path: Path
) -> None:
    script = TORCH.replace("is_integrated=False", "is_integrated=True")
    seen = Seen(tmp_path, script, [{"uuid": "GPU-b", "name": "B", **memory}])
    assert (seen.device.name, seen.device.total_bytes) == ("B", 7000)
    assert seen.last("total_bytes", "used_bytes", "free_bytes") == [UNKNOWN] * 3
    assert "shares its memory with the processor" in seen.notes
    assert "lost" not in seen.notes


def test_a_split_card_whose_whole_may_not_be_asked(tmp_path: Path) -> None:
    refused = {
        "nvmlDeviceGetMemoryInfo": "NVMLError_NoPermission",
        "nvmlDeviceGetUtilizationRates": NOT_SUPPORTED,
    }
    parts = [
        {"uuid": "MIG-1", "total": 100, "used": 30, "free": 70},
        {"uuid": "MIG-2", "total": 200},
    ]
    for part in parts:
        part["errors"] = {"nvmlDeviceGetUtilizationRates": NOT_SUPPORTED}
    card = {"uuid": "GPU-a", "total": 1000, "errors": refused, "parts": parts}
    seen = Seen(tmp_path, STEPS, [card])
    assert (seen.device.uuid, seen.device.total_bytes) == ("MIG-1", 100)
    assert seen.last("total_bytes", "used_bytes", "free_bytes") == [100, 30, 70]
    assert seen.last("utilization_percent") == [UNKNOWN]


def test_an_out_of_memory_that_comes_as_an_internal_assert(tmp_path: Path) -> None:
    """PyTorch's own report asks the driver, and where that fails another error is raised.

    Nothing calls it an unknown crash: the words of the error are kept, with the last numbers.
    """
    text = "NVML_SUCCESS == r INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp:1131"
    script = f"{TORCH}\nraise RuntimeError({text!r})\n"
    with FakeServer() as server:
        found = driver_environment(THREE[:2], {"nvmlDeviceGetMemoryInfo": NOT_SUPPORTED})
        code, _, written = finish(start_watched(write_script(tmp_path, script), server, found))
        (goodbye,) = server.of_type(Goodbye)
        last = list(server.rows("sample"))[-1]
    assert code == 1
    assert text in written
    assert (goodbye.reason, goodbye.text) == ("exception", f"RuntimeError: {text}")
    assert last["reserved_bytes.all.current"] == 77
    assert last["device.used_bytes"] == UNKNOWN


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetMemoryInfo"])
def test_a_driver_that_was_replaced_under_the_job(function: str, tmp_path: Path) -> None:
    seen = Seen(tmp_path, TORCH, THREE[:2], {function: "NVMLError_LibRmVersionMismatch"})
    assert seen.last("total_bytes") == [UNKNOWN]
    assert seen.samples[-1]["reserved_bytes.all.current"] == 77
    assert "until the machine is started again" in seen.notes
    assert "lost" not in seen.notes


@pytest.mark.parametrize("errors", [{"nvmlInit": "NVMLError_LibraryNotFound"}, {}])
def test_a_machine_or_container_without_driver_or_card(
    errors: dict[str, str], tmp_path: Path
) -> None:
    seen = Seen(tmp_path, STEPS, [], errors)
    assert seen.device.total_bytes is None
    assert seen.last("total_bytes", "process_bytes", "power_mw") == [UNKNOWN] * 3


def test_a_driver_that_hangs_never_holds_up_the_thread_that_trains(tmp_path: Path) -> None:
    """Every call takes 2 s; none is made by the training thread, so every step comes at once."""
    script = STEPS + (
        "import sys\n"
        "calls = sys.modules['pynvml'].calls\n"
        "assert calls.count('on the main thread') == 0, calls\n"
    )
    with FakeServer() as server:
        found = driver_environment(THREE[:2], {}, FAKE_NVML_CALL_S="2")
        command_ended = finish(start_watched(write_script(tmp_path, script), server, found))
        assert (command_ended[0], foreign_lines(command_ended[2])) == (0, [])

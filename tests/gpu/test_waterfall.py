"""On a real GPU: the account of the device is what NVML says is used, sample by sample."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, start
from tests.support.server_process import ServerProcess
from vramscope_analysis.waterfall import PARTS, Reading, account

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.timeout(400)]

MIB = 1 << 20
HELD_BYTES = 300 * MIB
TOLERANCE_BYTES = 2 * MIB
DRIVER_BYTES = 64 * MIB
JOB = REPOSITORY / "tests/support/jobs/gpu_outside.py"
USED_PARTS = ("reserved", "outside", "other_processes", "unknown")
COLUMNS = {
    "total": "device.total_bytes",
    "used": "device.used_bytes",
    "free": "device.free_bytes",
    "process": "device.process_bytes",
    "other": "device.other_bytes",
    "reserved": "reserved_bytes.all.current",
    "active": "active_bytes.all.current",
    "allocated": "allocated_bytes.all.current",
}
OTHER = f"""
import sys, torch
held = torch.zeros({HELD_BYTES}, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


@contextmanager
def second_process() -> Iterator[int]:
    """Another process that holds 300 MiB on the first device."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", OTHER], stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process.pid
        process.communicate()


def run(api: Api, name: str, launcher: Sequence[str] = ()) -> None:
    watched = [sys.executable, "-m", "vramscope", "run", str(JOB)]
    job = start(
        [*launcher, *watched],
        OMP_NUM_THREADS="1",
        VRAMSCOPE_URL=api.url,
        VRAMSCOPE_TOKEN=api.token,
        VRAMSCOPE_RUN=name,
    )
    code, output, errors = finish(job, timeout_s=300)
    assert code == 0, output + errors
    api.wait_for_run(name, lambda found: found["state"] == "ended", "to end")


def samples(api: Api, name: str, rank: int) -> list[dict[str, int | None]]:
    fields = ",".join(COLUMNS.values())
    path = f"/api/v1/runs/{name}/series?rank={rank}&fields={fields}&points=20000"
    found = api.get(path)
    assert found["resolution_ms"] == 0
    columns = {key: found["columns"][column]["max"] for key, column in COLUMNS.items()}
    return [
        {key: column[at] for key, column in columns.items()} for at in range(len(found["time_ns"]))
    ]


def assert_accounted(sample: dict[str, Any]) -> dict[str, int | None]:
    """The parts sum up to the device, and those in use to what NVML says is used."""
    reading = Reading(**sample, sample_reserved=sample["reserved"])
    parts = account(reading, "instant")
    for whole, children in PARTS.items():
        if parts[whole] is not None:
            assert sum(parts[child] or 0 for child in children) == parts[whole]
    assert parts["device"] == sample["total"]
    in_use = sum(parts[part] or 0 for part in USED_PARTS)
    assert abs(in_use - sample["used"]) <= TOLERANCE_BYTES, (parts, sample)
    return parts


def outside_events(api: Api, name: str, rank: int) -> list[dict[str, Any]]:
    found = api.get(f"/api/v1/runs/{name}/events?kind=outside&rank={rank}")["events"]
    for event in found:
        print(rank, event["text"])
        assert sum(part["bytes"] for part in event["data"]["parts"]) == event["data"]["bytes"]
    return list(found)


def test_every_sample_of_a_job_beside_another_process_sums_up_to_what_is_used(api: Api) -> None:
    with second_process() as pid:
        run(api, "account")
    taken = [each for each in samples(api, "account", 0) if each["reserved"] is not None]
    assert len(taken) > 100
    accounts = [assert_accounted(each) for each in taken]
    last = taken[-1]
    if last["process"] is None:
        # In a container the driver counts processes by other numbers: then nothing is claimed.
        assert {parts["outside"] for parts in accounts} == {None}
        return
    # From the second look on, when the context is up, it is there all the time.
    assert (accounts[-1]["outside"] or 0) > 100 * MIB
    if last["other"] is not None:
        assert last["other"] >= HELD_BYTES
        # What neither process holds is the driver's own: about 10 MiB for each context.
        assert max(parts["unknown"] or 0 for parts in accounts) <= DRIVER_BYTES
    events = outside_events(api, "account", 0)
    assert events[-1]["data"]["parts"][0]["name"].startswith("CUDA context")
    told = api.get("/api/v1/runs/account/events?kind=processes")["events"]
    if told:
        listed = {each["pid"]: each for event in told for each in event["data"]["processes"]}
        assert (listed[pid]["bytes"] or HELD_BYTES) >= HELD_BYTES
        assert listed[pid]["command"]


def test_the_account_of_the_last_step_is_answered(api: Api) -> None:
    run(api, "answered")
    found = api.get("/api/v1/runs/answered/waterfall")
    for parts in (
        found["sample"]["instant"]["bytes"],
        found["step"]["end"]["bytes"],
        found["step"]["peak"]["bytes"],
    ):
        for whole, children in found["parts"].items():
            assert parts[whole] is not None
            assert sum(parts[child] or 0 for child in children) == parts[whole]
    end, peak = found["step"]["end"]["bytes"], found["step"]["peak"]["bytes"]
    # One parameter of 4 KiB and its gradient. Two moments, and the step count on the host.
    assert (end["parameters"], end["gradients"], end["optimizer_state"]) == (4096, 4096, 8192)
    assert peak["allocated"] >= end["allocated"]


@pytest.mark.parametrize("ranks", [2])
def test_every_sample_of_two_ranks_over_nccl(api: Api, ranks: int) -> None:
    import torch

    if torch.cuda.device_count() < ranks:
        pytest.skip("needs two CUDA devices")
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    with second_process():
        run(api, "nccl", [sys.executable, *torchrun, "--no-python"])
    for rank in range(ranks):
        taken = [each for each in samples(api, "nccl", rank) if each["reserved"] is not None]
        assert len(taken) > 100
        accounts = [assert_accounted(each) for each in taken]
        if taken[-1]["process"] is None:
            continue
        assert (accounts[-1]["outside"] or 0) > 100 * MIB
        names = {
            part["name"]
            for event in outside_events(api, "nccl", rank)
            for part in event["data"]["parts"]
        }
        assert any("NCCL" in name or name.startswith("CUDA context") for name in names)

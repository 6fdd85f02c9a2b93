"""On a real GPU: pinned memory as PyTorch counts it, and what a job holds on a second device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import Api, finish, foreign_lines, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

JOB = """
import json, sys, time
import torch

layer = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

def steps(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        layer(torch.randn(64, 256, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)

steps(1)
kept = [torch.empty(100 << 20, dtype=torch.uint8, pin_memory=True)]
freed = torch.empty(33 << 20, dtype=torch.uint8, pin_memory=True)
del freed
found = {}
if torch.cuda.device_count() > 1:
    kept.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda:1"))
    found["uuid"] = str(torch.cuda.get_device_properties(1).uuid)
steps(6)  # everything stays as it is until each number has been read a few times
stats = torch.cuda.host_memory_stats() if hasattr(torch.cuda, "host_memory_stats") else {}
found["host"] = {name: int(value) for name, value in stats.items()}
if len(kept) > 1:
    found["second"] = {name: torch.cuda.memory_stats(1)[name] for name in (
        "allocated_bytes.all.current", "reserved_bytes.all.current", "allocated_bytes.all.peak")}
print(json.dumps(found))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as process:
        yield process


def run_job(server: ServerProcess, folder: Path) -> tuple[dict[str, Any], dict[str, Any], Api]:
    """What the job says of itself, the rank as it is stored, and where to ask for more."""
    script = folder / "job.py"
    script.write_text(JOB)
    command = watched_command(script, url=server.url, token=server.token, run="host")
    code, output, errors = finish(start(command), timeout_s=200)
    assert (code, foreign_lines(errors)) == (0, []), output + errors
    api = Api(server.url, server.token)
    run = api.wait_for_run("host", lambda run: run["state"] == "ended", "to end")
    return json.loads(output.splitlines()[-1]), run["ranks"][0], api


def newest(api: Api, *names: str) -> dict[str, int | None]:
    """The last stored value of each series."""
    path = f"/api/v1/runs/host/series?rank=0&points=20000&fields={','.join(names)}"
    columns = api.get(path)["columns"]
    return {name: columns[name]["max"][-1] for name in names}


def test_pinned_memory_is_what_pytorch_says(server: ServerProcess, tmp_path: Path) -> None:
    own, _, api = run_job(server, tmp_path)
    stored = newest(api, "host.pinned_bytes", "host.pinned_reserved_bytes", "host.rss_bytes")
    host = own["host"]
    if not host:  # PyTorch 2.6 and older does not count it
        assert stored["host.pinned_bytes"] is None
        return
    is_newer = "active_bytes.current" in host
    used, held = (
        ("active_bytes", "allocated_bytes") if is_newer else ("allocated_bytes", "reserved_bytes")
    )
    assert stored["host.pinned_bytes"] == host[f"{used}.current"] >= 100 << 20
    assert stored["host.pinned_reserved_bytes"] == host[f"{held}.current"]
    # PyTorch 2.11 counts what was freed as handed out until the block is used again.
    assert host[f"{held}.current"] >= host[f"{used}.current"]
    assert (stored["host.rss_bytes"] or 0) > 100 << 20


def test_a_second_device_has_columns_of_its_own(server: ServerProcess, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    own, rank, api = run_job(server, tmp_path)
    names = [f"{name}@1" for name in own["second"]]
    assert newest(api, *names) == {f"{name}@1": value for name, value in own["second"].items()}
    used = newest(api, "device.used_bytes@1", "device.total_bytes@1", "device.total_bytes")
    assert (used["device.used_bytes@1"] or 0) >= own["second"]["reserved_bytes.all.current"]
    assert used["device.total_bytes@1"]
    assert [device["index"] for device in rank["devices"]] == [0, 1]
    assert own["uuid"] in rank["devices"][1]["uuid"]

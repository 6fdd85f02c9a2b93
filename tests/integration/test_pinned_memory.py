"""Pinned memory that grows, from PyTorch's counter to the finding that a person reads.

Pinned memory needs CUDA, so the counter is a fake's; the process, the agent, the wire, the server
and its judges are real.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_machine import CUDA, driver_environment
from tests.support.job_process import finish, start, watched_command
from tests.support.same_job import write_script
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.timeout(240)

MIB = 1 << 20
DEVICE = {"uuid": "GPU-a", "name": "A", "total": 8192 * MIB, "used": 900 * MIB, "free": 7292 * MIB}

JOB = f"""{CUDA}
from types import SimpleNamespace
import vramscope
fake = fake_cuda(1)
sys.modules["torch.cuda"].get_device_properties = lambda index: SimpleNamespace(
    uuid="a", name="A", total_memory=8192 << 20, is_integrated=False)
fake.stats = [nested_stats(reserved_bytes=512 << 20, allocated_bytes=256 << 20)]
began = time.monotonic()

def pinned():
    used = int((time.monotonic() - began) * RATE_MIB) << 20
    return {{"active_bytes": {{"current": used + (64 << 20)}},
             "allocated_bytes": {{"current": used + (512 << 20)}}}}

sys.modules["torch"]._C._cuda_hostMemoryStats = pinned
while True:
    vramscope.step()
    time.sleep(0.1)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as started:
        yield started


def pinned_in(server: ServerProcess) -> list[dict[str, Any]]:
    answer = server.request("GET", "/api/v1/runs/pinned/findings?state=open")
    found = answer.body["findings"] if answer.status == 200 else []
    return [finding for finding in found if finding["kind"] == "pinned_growth"]


def test_pinned_batches_that_are_kept_become_a_finding(
    server: ServerProcess, tmp_path: Path
) -> None:
    script = write_script(tmp_path, JOB.replace("RATE_MIB", "4"))
    command = watched_command(script, url=server.url, token=server.token, run="pinned")
    job = start(command, **driver_environment([DEVICE]))
    try:
        # The counter is read every five seconds, and six different readings are needed.
        server.wait_until(lambda: pinned_in(server), 150)
        (found,) = pinned_in(server)
    finally:
        job.kill()
        finish(job)
    assert (found["severity"], found["ranks"]) == ("warning", [0])
    assert "more host memory are pinned, " in found["summary"]
    evidence = found["evidence"]
    assert evidence["series"] == "host.pinned_bytes"
    assert evidence["grown_bytes"] / evidence["seconds"] == pytest.approx(4 * MIB, rel=0.3)
    # What is held lies above what is handed out by what the fake keeps in its cache.
    assert evidence["pinned_reserved_bytes"] - evidence["pinned_bytes"] == 448 * MIB
    first = found["remedies"][0]
    assert first["action"].startswith("do not keep pinned batches")
    assert first["predicted_bytes"] == evidence["grown_bytes"]

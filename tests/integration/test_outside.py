"""Memory outside of PyTorch, in real processes under a driver that tells of it, or does not.

The recipes are those of public reports: communicators that nobody sees (fairscale 678), a driver
without numbers by process (nvtop 432), workspaces that are PyTorch's after all (pytorch 95668).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_machine import CUDA, driver_environment, start_watched
from tests.support.fake_server import FakeServer
from tests.support.job_process import finish, foreign_lines
from tests.support.same_job import write_script
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import AgentStatus, Event

MIB = 1 << 20
ALL_BITS = (1 << 64) - 1
DEVICE = {"uuid": "GPU-a", "name": "A", "total": 8192 * MIB, "used": 900 * MIB, "free": 7292 * MIB}

JOB = f"""{CUDA}
from pathlib import Path
from types import SimpleNamespace
import vramscope
fake = fake_cuda(1)
sys.modules["torch.cuda"].get_device_properties = lambda index: SimpleNamespace(
    uuid="a", name="A", total_memory=8192 << 20, is_integrated=False)
own = Path(os.environ["FAKE_NVML_PROCESSES"], "GPU-a", str(os.getpid()))
own.parent.mkdir(parents=True, exist_ok=True)

def train(outside_bytes, seconds, reserved_mib=0):
    fake.stats = [nested_stats(reserved_bytes=reserved_mib << 20, allocated_bytes=512)]
    own.write_text(str(outside_bytes + (reserved_mib << 20)))
    for _ in range(int(seconds / 0.1)):
        vramscope.step()
        time.sleep(0.1)
"""


def run(folder: Path, script: str) -> tuple[AgentStatus, list[Event], list[dict[str, int]]]:
    with FakeServer() as server:
        found = driver_environment([DEVICE], FAKE_NVML_PROCESSES=str(folder / "processes"))
        job = start_watched(write_script(folder, JOB + script), server, found)
        code, output, written = finish(job)
        assert (code, output, foreign_lines(written)) == (0, "", [])
        samples, status = list(server.rows("sample")), server.status
        events = [event for event in server.of_type(Event) if event.kind == "outside"]
    assert status is not None
    assert status.guard_errors == 0
    return status, events, samples


def test_communicators_are_named_and_pytorch_is_not_blamed(tmp_path: Path) -> None:
    script = f"""
train({520 * MIB}, 3)
groups = {{1: ("nccl", None), 2: ("gloo", None)}}
sys.modules["torch.distributed.distributed_c10d"] = SimpleNamespace(
    _world=SimpleNamespace(pg_map=groups))
train({820 * MIB}, 6, reserved_mib=40)
"""
    status, events, samples = run(tmp_path, script)
    parts = {part.name: part.bytes // MIB for part in status.outside}
    assert parts == {"CUDA context": 520, "NCCL": 300}
    last = samples[-1]
    held = sum(part.bytes for part in status.outside)
    assert last["device.process_bytes"] - last["reserved_bytes.all.current"] == held
    assert events[0].data["parts"][0]["name"] == "CUDA context"


@pytest.mark.parametrize("told", [ALL_BITS, 1])
def test_where_the_driver_does_not_tell_nothing_is_claimed(tmp_path: Path, told: int) -> None:
    status, events, samples = run(tmp_path, f"train({told}, 2, reserved_mib=0)\n")
    # One byte is less than any context: but it is what the driver says, and no more.
    expected = [] if told == ALL_BITS else [1]
    assert [part.bytes for part in status.outside] == expected
    assert len(events) == len(expected)
    assert samples[-1]["device.process_bytes"] == (UNKNOWN if told == ALL_BITS else 1)


def test_a_workspace_of_pytorchs_own_is_not_outside(tmp_path: Path) -> None:
    script = f"""
train({520 * MIB}, 2)
train({520 * MIB}, 4, reserved_mib=8)
"""
    status, _, samples = run(tmp_path, script)
    assert {part.name: part.bytes // MIB for part in status.outside} == {"CUDA context": 520}
    assert samples[-1]["reserved_bytes.all.current"] == 8 * MIB

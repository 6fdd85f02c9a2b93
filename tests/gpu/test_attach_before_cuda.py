"""On a real GPU: a job that is watched before it uses CUDA decides itself when CUDA starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api, finish, plain_command, start, wait_until, watched_command
from tests.support.server_process import ServerProcess
from vramscope.attaching.attach import attach_process

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

# A child can only use CUDA if its parent has not: the strongest sign that nothing started it. Files
# that are open say nothing: NVML alone opens that of unified memory too (driver 580).
# Until then nothing but a forward pass on the CPU: an optimizer asks whether a graph is being
# captured, and backward counts devices, both of which start the driver in a job nobody watches.
SCRIPT = """
import json, os, sys, time, torch
from pathlib import Path
folder = Path(sys.argv[1])

def train(device, steps):
    model = torch.nn.Linear(8, 8).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        model(torch.ones(4, 8, device=device)).sum().backward()
        optimizer.step(); optimizer.zero_grad()
        time.sleep(0.02)

(folder / "pid").write_text(str(os.getpid()))
while not (folder / "watched").exists():
    torch.ones(64).sum()
    time.sleep(0.02)
seen = {"initialized": torch.cuda.is_initialized()}
pid = os.fork()
if pid == 0:
    torch.ones(64, device="cuda").sum().item()
    os._exit(0)
seen["child"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
train("cuda", 100)
seen["afterwards"] = torch.cuda.is_initialized()
print(json.dumps(seen))
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


@pytest.mark.parametrize("way", ["run", "attach"])
def test_cuda_starts_when_the_job_starts_it(way: str, api: Api, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    if way == "run":
        command = watched_command(script, str(tmp_path), url=api.url, token=api.token, run="r")
    else:
        command = plain_command(script, str(tmp_path))
    job = start(command)
    wait_until((tmp_path / "pid").exists, bool, "the job to begin", timeout_s=120)
    if way == "attach":
        options = {"url": api.url, "token": api.token, "run": "r"}
        pid = int((tmp_path / "pid").read_text() or job.pid)
        assert attach_process(pid, options, say=print).ok
    before = api.wait_for_run(
        "r", lambda run: run["ranks"][0]["samples_received"] > 20, "samples before CUDA"
    )
    (tmp_path / "watched").touch()
    code, output, errors = finish(job)
    assert code == 0, errors
    seen = json.loads(output)
    assert seen == {"initialized": False, "child": 0, "afterwards": True}
    run = api.wait_for_run("r", lambda run: run["state"] == "ended", "to end")
    assert len(before["ranks"]) == len(run["ranks"]) == 1
    assert run["ranks"][0]["device_uuid"]

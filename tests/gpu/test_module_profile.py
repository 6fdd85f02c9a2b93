"""On a real GPU: memory by module, with the backward pass on autograd's own thread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api, finish, plain_command, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

MIB = 1 << 20

SCRIPT = """
import sys, time, torch
from pathlib import Path
folder = Path(sys.argv[1])
torch.manual_seed(0)

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(2048, 16384, bias=False)
        self.down = torch.nn.Linear(16384, 2048, bias=False)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

model = torch.nn.Sequential(torch.nn.Linear(2048, 2048, bias=False), Block(), Block()).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
losses, peaks = [], []
for step in range(20000):
    torch.cuda.reset_peak_memory_stats()
    loss = model(torch.ones(1024, 2048, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
    peaks.append(torch.cuda.max_memory_allocated())
    if step >= 50 and (folder / "stop").exists():
        break
    time.sleep(0.002)
hooks = torch.nn.modules.module
print(len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks))
print(*(loss.hex() for loss in losses[:50]))
print(max(peaks[5:]), min(peaks[5:]))
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def test_modules_are_told_apart_in_forward_and_backward(api: Api, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    job = start(watched_command(script, str(tmp_path), url=api.url, token=api.token, run="r"))
    api.wait_for_run("r", lambda run: run["ranks"][0]["steps_received"] > 20, "steps", 120)
    command = api.command("r", "profile_modules", params={"steps": 5})
    (tmp_path / "stop").touch()
    code, output, errors = finish(job)
    assert code == 0, errors
    receipt = command["receipts"]["0"]
    assert receipt["state"] == "done", receipt["message"]
    print(receipt["message"])
    rows = {row["path"]: row for row in receipt["result"]["modules"]}
    assert rows["1"]["parameters_bytes"] == 256 * MIB
    assert rows["1.up"]["kept_bytes"] == 64 * MIB
    assert rows["1"]["kept_bytes"] == 64 * MIB + 8 * MIB
    assert rows["1"]["forward_extra_bytes"] == 128 * MIB
    hooks, losses, peaks = output.splitlines()
    assert hooks == "0 0"
    # The job's own peaks are the same in the steps that were watched, and the highest module of
    # the backward has the peak of the step.
    highest, lowest = map(int, peaks.split())
    assert highest == lowest
    of_model = rows["Sequential"]
    assert max(of_model["backward_peak_bytes"], of_model["forward_peak_bytes"]) == highest
    (tmp_path / "stop").touch()
    code, twin_output, errors = finish(start(plain_command(script, str(tmp_path))))
    assert code == 0, errors
    assert twin_output.splitlines()[1:] == [losses, peaks]

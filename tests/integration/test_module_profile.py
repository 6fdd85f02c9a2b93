"""The command ``profile_modules`` on a real job under emulation: modules by path, job untouched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api, finish, plain_command, start, watched_command
from tests.support.server_process import ServerProcess

pytest.importorskip("torch")

MIB = 1 << 20

# Trains until told to stop, and prints what its numbers were.
SCRIPT = """
import sys, time, torch
from pathlib import Path
folder = Path(sys.argv[1])
torch.manual_seed(0)

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(256, 2048, bias=False)
        self.down = torch.nn.Linear(2048, 256, bias=False)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

model = torch.nn.Sequential(torch.nn.Linear(256, 256, bias=False), Block(), Block())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
losses, peaks = [], []
for step in range(2000):
    loss = model(torch.ones(128, 256)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
    if step >= 20 and (folder / "stop").exists():
        break
    time.sleep(0.005)
hooks = torch.nn.modules.module
print(len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks))
print(*(loss.hex() for loss in losses[:20]))
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def test_a_job_is_watched_module_by_module_and_goes_on_as_before(api: Api, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    options = ("--emulate", "--capacity", "4GiB")
    job = start(
        watched_command(
            script, str(tmp_path), url=api.url, token=api.token, run="r", options=options
        )
    )
    api.wait_for_run("r", lambda run: run["ranks"][0]["steps_received"] > 5, "steps")
    command = api.command("r", "profile_modules", params={"steps": 4})
    (tmp_path / "stop").touch()
    code, output, errors = finish(job)
    assert code == 0, errors
    receipt = command["receipts"]["0"]
    assert receipt["state"] == "done", receipt["message"]
    rows = {row["path"]: row for row in receipt["result"]["modules"]}
    assert receipt["result"]["steps"] == 4
    assert rows["1"]["parameters_bytes"] == 4 * MIB
    assert rows["1.up"]["parameters_bytes"] == 2 * MIB
    # Up's output is overwritten by relu's, which the backward needs; of the sum nothing is kept
    # but the output itself.
    assert rows["1"]["kept_bytes"] == MIB + MIB // 8
    assert rows["1.up"]["kept_bytes"] == MIB
    assert rows["1"]["forward_extra_bytes"] == 2 * MIB
    assert rows["2"]["backward_peak_bytes"] > rows["2"]["kept_bytes"]
    # No hook is left, and the numbers are those of the job that nobody watched.
    hooks, losses = output.splitlines()
    assert hooks == "0 0"
    (tmp_path / "stop").touch()
    code, twin_output, errors = finish(start(plain_command(script, str(tmp_path))))
    assert code == 0, errors
    assert twin_output.splitlines()[1] == losses

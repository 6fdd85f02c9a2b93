"""Forked children are not ranks, do not deadlock, and leave the parent's stream alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.fake_machine import driver_environment
from tests.support.fake_server import FakeServer
from tests.support.job_process import REPOSITORY, finish, plain_command, start
from tests.support.same_job import run_both, write_script
from vramscope_protocol.messages import Goodbye, Register

OFTEN = REPOSITORY / "tests/support/jobs/forks_often.py"
GPU = [{"uuid": "GPU-a"}]

FORKS = """
import os, sys, threading
import vramscope
vramscope.attach()
vramscope.step()
children = []
for number in range(8):
    pid = os.fork()
    if pid == 0:
        vramscope.step()
        vramscope.log(loss=1)
        vramscope.detach()
        alive = [t.name for t in threading.enumerate() if t.name.startswith("vramscope")]
        sys.exit(len(alive))  # runs the exit handlers, unlike multiprocessing
    children.append(pid)
    vramscope.step()
print([os.waitpid(pid, 0)[1] for pid in children])
"""

WORKERS = """
import sys, torch, warnings
import vramscope
from torch.utils.data import DataLoader, Dataset
warnings.filterwarnings("ignore", category=DeprecationWarning)  # of fork with threads: Python 3.12

class Squares(Dataset):
    def __len__(self): return 32
    def __getitem__(self, i): return torch.tensor([float(i) ** 2])

if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for epoch in range(2):
        for batch in DataLoader(Squares(), batch_size=8, num_workers=2, shuffle=True,
                                multiprocessing_context="fork"):
            loss = model(batch).square().mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(loss.item())
    sys.exit(4)
"""

CHILD_ATTACHES = """
import os, vramscope
vramscope.attach(run="parent")
pid = os.fork()
if pid == 0:
    vramscope.attach(run="child")
    vramscope.step()
    vramscope.detach()
    os._exit(0)
print(os.waitpid(pid, 0)[1])
"""


def test_plain_forks(tmp_path: Path) -> None:
    with FakeServer() as server:
        outcome = run_both(write_script(tmp_path, FORKS), server.url, server.token)
        assert len(server.of_type(Register)) == len(server.of_type(Goodbye)) == 1
        assert [row["step"] for row in server.rows("step")] == list(range(1, 10))
    assert outcome.extra_s < 2


@pytest.mark.torch
def test_data_loader_workers(tmp_path: Path) -> None:
    with FakeServer() as server:
        run_both(write_script(tmp_path, WORKERS), server.url, server.token)
        # It registers again when torch is there; the workers never do.
        assert lives(server) == 1
        assert server.connections == len(server.of_type(Register)) <= 3
        assert [row["step"] for row in server.rows("step")] == list(range(1, 9))
        assert server.goodbye is not None
        assert server.goodbye.exit_code == 4


def test_a_child_may_attach_for_itself(tmp_path: Path) -> None:
    script = write_script(tmp_path, CHILD_ATTACHES)
    with FakeServer() as server:
        run_both(
            script, server.url, server.token, VRAMSCOPE_URL=server.url, VRAMSCOPE_TOKEN=server.token
        )
        streams = {register.stream for register in server.of_type(Register)}
        pids = {register.rank.pid for register in server.of_type(Register)}
        assert len(streams) == len(pids) == 2


def lives(server: FakeServer) -> int:
    """How often a process was attached; it may register anew within one life."""
    return len({(r.stream, r.rank.pid) for r in server.of_type(Register)})


def forks_often(server: FakeServer, *options: str, **environment: str) -> int:
    """How many children there were; all of them ended well."""
    server_variables = {"VRAMSCOPE_URL": server.url, "VRAMSCOPE_TOKEN": server.token}
    found = driver_environment(GPU, {}, **server_variables, **environment)
    code, output, errors = finish(start(plain_command(OFTEN, *options), **found))
    assert code == 0, errors
    seen = json.loads(output)
    assert seen["wrong"] == [], errors
    return int(seen["children"])


def test_forks_while_the_driver_is_being_asked(tmp_path: Path) -> None:
    """A child that inherited a locked driver would hang at its first question."""
    with FakeServer() as server:
        forks_often(server, "--forks", "60", FAKE_NVML_CALL_S="0.05")
        assert lives(server) == 1
        assert [row["step"] for row in server.rows("step")] == list(range(1, 61))


def test_forks_while_the_agent_comes_up(tmp_path: Path) -> None:
    """A child that inherited a half imported module would hang when it imports it."""
    with FakeServer() as server:
        forks_often(server, "--forks", "20", FAKE_NVML_IMPORT_S="0.4")
        assert lives(server) == len(server.of_type(Goodbye)) == 1


def test_forks_in_the_middle_of_attach_and_detach(tmp_path: Path) -> None:
    with FakeServer() as server:
        children = forks_often(server, "--attaches", "25", FAKE_NVML_CALL_S="0.001")
        assert children > 25
        assert lives(server) == len(server.of_type(Goodbye)) == 25
        assert len({register.rank.pid for register in server.of_type(Register)}) == 1

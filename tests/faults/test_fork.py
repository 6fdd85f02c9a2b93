"""Forked children are not ranks, do not deadlock, and leave the parent's stream alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_server import FakeServer
from tests.support.same_job import run_both, write_script
from vramscope_protocol.messages import Goodbye, Register

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
        lives = {(r.stream, r.rank.pid) for r in server.of_type(Register)}
        assert len(lives) == 1
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

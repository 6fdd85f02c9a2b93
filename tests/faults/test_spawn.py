"""Processes that the job starts to work for it are not ranks, however they are started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_server import FakeServer
from tests.support.same_job import run_both, write_script
from vramscope_protocol.messages import Goodbye, Register

# What each worker finds is printed by the parent, so that it is compared with the bare run too.
LOADER = """
import sys, threading, torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

class Squares(Dataset):
    def __len__(self): return 16
    def __getitem__(self, i):
        assert get_worker_info() is not None
        assert not [t for t in threading.enumerate() if t.name.startswith("vramscope")]
        return torch.tensor([float(i) ** 2])

def train(context):
    loader = DataLoader(Squares(), batch_size=4, num_workers=1, shuffle=True,
                        multiprocessing_context=context, persistent_workers=True)
    for epoch in range(2):
        for batch in loader:
            loss = model(batch).square().mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(context, loss.item())

if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for context in ("spawn", "forkserver"):
        train(context)
"""

PROCESSES = """
import sys, threading, warnings
import torch, torch.multiprocessing as mp
warnings.filterwarnings("ignore", category=DeprecationWarning)  # of fork with threads: Python 3.12

def work(number, answers):
    # A worker that even trains: without a process group it is no rank.
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.ones(2)).sum().backward()
    optimizer.step()
    ours = [t.name for t in threading.enumerate() if t.name.startswith("vramscope")]
    answers.put((number, layer.weight.grad.sum().item(), ours))

def square(number):
    return number * number

if __name__ == "__main__":
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    optimizer.step()
    for method in ("fork", "spawn"):
        context = mp.get_context(method)
        answers = context.SimpleQueue()
        workers = [context.Process(target=work, args=(0, answers))]
        for worker in workers: worker.start()
        print(method, sorted(answers.get() for _ in workers))
        for worker in workers: worker.join()
        print([worker.exitcode for worker in workers])
        optimizer.step()
    with mp.get_context("forkserver").Pool(1) as pool:
        print(pool.map(square, range(5)))
    sys.exit(6)
"""

PROGRAMS = """
import os, subprocess, sys
import vramscope
CODE = "import sys, threading; import vramscope; vramscope.step(); " \\
       "print([t.name for t in threading.enumerate()], flush=True); sys.exit(5)"
program = [sys.executable, "-c", CODE]
vramscope.step()
print(subprocess.run(program, capture_output=True).stdout)
print(subprocess.run(program, capture_output=True, preexec_fn=lambda: None).stdout)
print(subprocess.run(program, capture_output=True, close_fds=False).stdout)
pid = os.posix_spawn(sys.executable, program, os.environ)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
pid = os.fork()
if pid == 0:
    os.execv(sys.executable, program)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(os.system("true"), os.popen("echo from a shell").read())
vramscope.step()
"""

BECOMES_ANOTHER = """
import os, sys, time
import vramscope
vramscope.step()
time.sleep(0.5)
os.execv(sys.executable, [sys.executable, "-c", "print('another program')"])
"""


def lives(server: FakeServer) -> int:
    """How often a process was attached; it may register anew within one life."""
    return len({(r.stream, r.rank.pid) for r in server.of_type(Register)})


@pytest.mark.torch
def test_data_loader_workers_that_start_afresh(tmp_path: Path) -> None:
    with FakeServer() as server:
        run_both(write_script(tmp_path, LOADER), server.url, server.token)
        assert lives(server) == len(server.of_type(Goodbye)) == 1
        assert [row["step"] for row in server.rows("step")] == list(range(1, 17))


@pytest.mark.torch
def test_processes_and_pools_of_torch(tmp_path: Path) -> None:
    with FakeServer() as server:
        run_both(write_script(tmp_path, PROCESSES), server.url, server.token)
        assert lives(server) == len(server.of_type(Goodbye)) == 1
        assert [row["step"] for row in server.rows("step")] == [1, 2, 3]
        assert server.goodbye is not None
        assert server.goodbye.exit_code == 6


def test_other_programs(tmp_path: Path) -> None:
    with FakeServer() as server:
        run_both(write_script(tmp_path, PROGRAMS), server.url, server.token)
        assert lives(server) == len(server.of_type(Goodbye)) == 1
        assert [row["step"] for row in server.rows("step")] == [1, 2]


def test_a_job_that_becomes_another_program_ends_without_a_goodbye(tmp_path: Path) -> None:
    with FakeServer() as server:
        run_both(write_script(tmp_path, BECOMES_ANOTHER), server.url, server.token)
        assert lives(server) == 1
        assert server.of_type(Goodbye) == []
        assert [row["step"] for row in server.rows("step")] == [1]

"""What the agent's threads must not do while the job has threads, and children, of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_machine import driver_environment
from tests.support.fake_server import FakeServer
from tests.support.job_process import finish, plain_command, start
from tests.support.same_job import write_script
from vramscope_protocol.messages import Register

# A module that a thread of ours imports is locked in a child that is forked meanwhile.
LATE_IMPORTS = """
import sys, threading, time

class Watcher:
    def find_spec(self, name, path=None, target=None):
        thread, gate = threading.current_thread(), sys.modules.get("vramscope.fork_gate")
        held = any(stay.thread == thread.ident for stay in gate._inside) if gate else False
        if thread is not threading.main_thread() and not held:
            late.append((thread.name, name))

late = []
import vramscope
sys.meta_path.insert(0, Watcher())
session = vramscope.attach()
session.wait_for_server(20)
for number in range(10):
    vramscope.log(loss=1.0)
    vramscope.step()
    time.sleep(0.05)
vramscope.detach()
print(late)
"""

ON_A_THREAD = """
import threading, vramscope

def train():
    vramscope.attach()
    for number in range(5):
        vramscope.step()

thread = threading.Thread(target=train)
thread.start()
thread.join()
others = [threading.Thread(target=vramscope.step) for _ in range(4)]
for other in others: other.start()
for other in others: other.join()
vramscope.detach()
print([t.name for t in threading.enumerate()])
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_thread_of_ours_imports_while_the_job_may_fork(host: str, tmp_path: Path) -> None:
    with FakeServer() as server:
        url = server.url.replace("127.0.0.1", host)
        environment = driver_environment(
            [{"uuid": "GPU-a"}], {}, VRAMSCOPE_URL=url, VRAMSCOPE_TOKEN=server.token
        )
        job = start(plain_command(write_script(tmp_path, LATE_IMPORTS)), **environment)
        code, output, errors = finish(job)
        assert (code, output) == (0, "[]\n"), errors
        assert server.of_type(Register)


def test_a_job_that_attaches_and_trains_on_another_thread(tmp_path: Path) -> None:
    with FakeServer() as server:
        found = {"VRAMSCOPE_URL": server.url, "VRAMSCOPE_TOKEN": server.token}
        job = start(plain_command(write_script(tmp_path, ON_A_THREAD)), **found)
        code, output, errors = finish(job)
        assert (code, output) == (0, "['MainThread']\n"), errors
        assert [row["step"] for row in server.rows("step")][:5] == [1, 2, 3, 4, 5]
        assert len({register.stream for register in server.of_type(Register)}) == 1

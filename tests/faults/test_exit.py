"""The interpreter ends as ever, and in time, while the server hangs."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.support.fake_server import Behaviour, FakeServer, silent_listener
from tests.support.job_process import finish, start, watched_command
from tests.support.same_job import run_both, write_script

ENDS = {
    "end of script": "print('done')",
    "sys.exit": "import sys; print('done'); sys.exit(5)",
    "exception": "def f(): raise ValueError('bad')\nf()",
    "os._exit": "import os, sys; print('done'); sys.stdout.flush(); os._exit(6)",
    "thread outlives": (
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()"
    ),
    "exit handler": "import atexit; atexit.register(print, 'handler')",
    "closed stderr": "import sys, os; sys.stderr.close(); os.close(2)",
    "own exception hook": (
        "import sys\nsys.excepthook = lambda *a: print('hook', a[2].tb_lineno)\nraise ValueError"
    ),
    "killed by itself": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "raise KeyboardInterrupt",
}
BUSY = """
import time, vramscope
for _ in range(20):
    vramscope.step()
    time.sleep(0.02)
"""


@pytest.mark.parametrize("end", ENDS)
def test_every_end_is_the_scripts_own(tmp_path: Path, end: str) -> None:
    script = write_script(tmp_path, ENDS[end])
    with FakeServer() as server:
        run_both(script, server.url, server.token)


@pytest.mark.parametrize(
    ("behaviour", "end"),
    [
        (Behaviour(stops_reading=True), "end of script"),
        (Behaviour(acks=False), "sys.exit"),
        (Behaviour(welcomes=False), "exception"),
        (None, "end of script"),
    ],
    ids=["never reads", "never acknowledges", "never welcomes", "silent"],
)
def test_a_hanging_server_costs_less_than_two_seconds(
    tmp_path: Path, behaviour: Behaviour | None, end: str
) -> None:
    script = write_script(tmp_path, BUSY + ENDS[end])
    if behaviour is None:
        with silent_listener() as url:
            assert run_both(script, url).extra_s < 2.0
    else:
        with FakeServer(behaviour) as server:
            assert run_both(script, server.url, server.token).extra_s < 2.0


def test_a_signal_ends_the_job_at_once_and_without_a_goodbye(tmp_path: Path) -> None:
    script = write_script(tmp_path, "import time\nprint('up', flush=True)\ntime.sleep(60)")
    with FakeServer() as server:
        job = start(watched_command(script, url=server.url, token=server.token, run="r"))
        assert job.stdout is not None
        assert job.stdout.readline() == "up\n"
        started_s = time.monotonic()
        job.send_signal(signal.SIGTERM)
        code, _, _ = finish(job, 10)
        assert code == -signal.SIGTERM
        assert time.monotonic() - started_s < 1.0
        assert server.goodbye is None

"""Whether a process runs."""

from __future__ import annotations

import os
import subprocess
import sys

from vramscope_server.process import process_alive


def test_this_process_runs_and_an_impossible_one_does_not() -> None:
    assert process_alive(os.getpid())
    assert not process_alive(0)
    assert not process_alive(-1)
    assert not process_alive(2**22 + 1)  # above the largest pid_max of Linux


def test_a_killed_process_that_nobody_reaped_does_not_run() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert process_alive(child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and left as a zombie
        assert not process_alive(child.pid)

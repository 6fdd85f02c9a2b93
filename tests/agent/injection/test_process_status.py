"""The few words of /proc are read right, whatever a process calls itself."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import pytest

from tests.support.attach_targets import wait_until
from vramscope.injection.process_status import name_of_process, read_process_status

ODD_NAME = b"a) S (b 7"
NAMED = f"""
import ctypes, time
ctypes.CDLL(None).prctl(15, {ODD_NAME!r})
print("ready", flush=True)
time.sleep(1000)
"""


def test_own() -> None:
    status = read_process_status(os.getpid())
    assert (status.pid, status.parent, status.tracer) == (os.getpid(), os.getppid(), 0)
    assert os.path.samefile(status.executable, f"/proc/{os.getpid()}/exe")
    assert status.innermost_pid == os.getpid()
    assert not status.shadow_stack


def test_a_name_that_looks_like_the_rest_of_the_line() -> None:
    with subprocess.Popen([sys.executable, "-c", NAMED], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert name_of_process(process.pid) == ODD_NAME.decode()
        wait_until(lambda: read_process_status(process.pid).state == "S")
        assert read_process_status(process.pid).parent == os.getpid()
        process.send_signal(signal.SIGKILL)
        wait_until(lambda: read_process_status(process.pid).state == "Z")
        # Ended and not yet waited for: there is no program any more.
        assert read_process_status(process.pid).executable == ""


def test_started_ticks_tell_two_lives_apart() -> None:
    ticks = int(ctypes.CDLL(None).sysconf(2))
    with open("/proc/uptime") as file:
        uptime_s = float(file.read().split()[0])
    assert 0 < read_process_status(os.getpid()).started_ticks <= uptime_s * ticks


def test_gone() -> None:
    assert name_of_process(2**22 + 1) == ""
    with pytest.raises(FileNotFoundError):
        read_process_status(2**22 + 1)

"""Where a main thread waits in the kernel, in words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.attach_targets import attach_target, wait_until
from vramscope.injection import native_wait
from vramscope.injection.process_status import read_process_status


@pytest.mark.parametrize(
    ("mode", "call"), [("pause", "pause"), ("futex", "futex"), ("poll", "poll")]
)
def test_the_system_call_is_named(mode: str, call: str, tmp_path: Path) -> None:
    if mode == "pause" and os.uname().machine != "x86_64":
        pytest.skip("there is no such system call here")
    with attach_target(tmp_path, "waiting", mode) as target:
        wait_until(lambda: native_wait(target.pid).startswith(f"sleeping in {call}"))


def test_running_and_stopped(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        wait_until(lambda: native_wait(target.pid) == "running")
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: native_wait(target.pid) == "stopped")


def test_ended_and_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        wait_until(lambda: read_process_status(process.pid).state == "Z")
        assert native_wait(process.pid) == "ended"
    assert native_wait(2**22 + 1) == ""

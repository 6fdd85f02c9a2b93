"""The mark that tells from outside that a process is watched."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from tests.agent.sampling.test_sampler import Rig
from tests.support.job_process import child_environment
from vramscope.processes.attached import is_attached, mark_this_thread

PRINTS_WHETHER_ATTACHED = f"""
from vramscope.processes.attached import is_attached
print(is_attached({os.getpid()}))
"""


def attached_as_others_see_it() -> bool:
    """What another process finds."""
    output = subprocess.run(
        [sys.executable, "-c", PRINTS_WHETHER_ATTACHED],
        env=child_environment(),
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout
    return output.strip() == b"True"


def test_a_process_is_attached_while_its_sampler_runs() -> None:
    assert not attached_as_others_see_it()
    rig = Rig(rate_hz=50.0)
    rig.sampler.start()
    assert rig.status_came.wait(10.0)
    assert attached_as_others_see_it()
    assert rig.sampler.stop(5.0)
    assert not attached_as_others_see_it()


def test_the_name_of_the_command_is_not_the_mark() -> None:
    """The main thread of ``vramscope run`` is called so, and what it starts inherits that."""
    started, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with open("/proc/thread-self/comm", "w", encoding="ascii") as name:
            name.write("vramscope")
        started.set()
        may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait()
    try:
        assert not is_attached(os.getpid())
    finally:
        may_end.set()
        thread.join()


def test_only_the_calling_thread_is_marked() -> None:
    thread = threading.Thread(target=mark_this_thread)
    thread.start()
    thread.join()
    with open("/proc/self/comm", encoding="utf-8") as name:
        assert not name.read().startswith("vramscope")


def test_a_process_that_is_gone_is_not_attached() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert not is_attached(ended.pid)

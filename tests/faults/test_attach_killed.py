"""Whoever reaches into a process may be killed at any moment: the process does not notice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attach_targets import COUNT, AttachTarget, attach_target, wait_until
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from tests.support.job_process import child_environment
from vramscope.injection import inject
from vramscope.injection.process_status import read_process_status
from vramscope.injection.stages import STAGES

BY_PENDING_CALL = [one for one in offered_interpreters() if one.version < (3, 14)]
# From here on the line gets into the queue, though its sender is dead.
ARMED = STAGES[STAGES.index("calling") :]
STORM_KILLS = 6

# A forked child for each stage, so that Python starts once. It says what it has survived.
CLIENT = """
import os, signal, sys
from vramscope.injection import find_interpreter, inject

interpreter = find_interpreter(int(sys.argv[1]))
line = sys.argv[2].encode()
for deadly in sys.argv[3:]:
    child = os.fork()
    if child == 0:
        def die(stage):
            if stage == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
        inject(interpreter, line, at_stage=die)
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

STORM = """
import sys
from vramscope.injection import find_interpreter, inject

interpreter = find_interpreter(int(sys.argv[1]))
print("armed", flush=True)
while True:
    inject(interpreter, b"pass\\n")
"""


def killed_at(target: AttachTarget, stages: tuple[str, ...]) -> list[int]:
    """Exit codes of clients that kill themselves at these stages, one after the other."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(target.pid), COUNT.decode(), *stages],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [int(line) for line in done.stdout.split()]


@pytest.fixture(params=BY_PENDING_CALL, ids=str)
def working(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AttachTarget]:
    python: OfferedInterpreter = request.param
    with attach_target(tmp_path, "working", "python", python.executable) as target:
        yield target


def test_killed_at_each_stage_the_line_runs_once_or_not_at_all(working: AttachTarget) -> None:
    codes = killed_at(working, STAGES)
    # The system call is needed once: one that was killed in the middle of it has left its pages.
    survived = [stage for stage, code in zip(STAGES, codes, strict=True) if code == 7]
    assert all("system call" in stage for stage in survived)
    assert set(codes) == {-signal.SIGKILL, 7}
    inject(working.interpreter, COUNT)
    working.end_unharmed(len(survived) + len(ARMED) + 1)


@pytest.mark.parametrize("stage", ["before system call", "in system call", "after system call"])
def test_killed_while_memory_is_being_mapped(stage: str, working: AttachTarget) -> None:
    assert killed_at(working, (stage,)) == [-signal.SIGKILL]
    inject(working.interpreter, COUNT)
    working.end_unharmed(1)


@pytest.mark.parametrize(
    ("stage", "mode"),
    [
        *((stage, "sleep") for stage in (*ARMED, "masked")),
        *((stage, mode) for stage in ("running", "home") for mode in ("select", "poll")),
        *((stage, mode) for stage in ("running", "home") for mode in ("futex", "read")),
    ],
)
def test_killed_while_the_target_waits(stage: str, mode: str, tmp_path: Path) -> None:
    with attach_target(tmp_path, "waiting", mode) as target:
        wait_until(lambda: read_process_status(target.pid).state == "S")
        assert killed_at(target, (stage,)) == [-signal.SIGKILL]
        armed = stage != "masked"  # Where only memory is being mapped, nothing has been queued.
        target.end_unharmed(int(armed))


def test_a_storm_of_clients_killed_at_any_moment(working: AttachTarget) -> None:
    moments = random.Random(1)
    for _ in range(STORM_KILLS):
        with subprocess.Popen(
            [sys.executable, "-c", STORM, str(working.pid)],
            env=child_environment(),
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "armed\n"
            time.sleep(moments.random() * 0.01)
            client.kill()
    working.end_unharmed(0)

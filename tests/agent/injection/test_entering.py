"""The program that is run in another process's place is who that process is, with no right more."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.container import container, why_no_containers
from tests.support.interpreters import offered_interpreters
from vramscope.injection.own_interpreter import run_own_interpreter

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")

needs_container = pytest.mark.skipif(
    why_no_containers() is not None, reason=f"no containers here: {why_no_containers()}"
)
SLEEP = ("-c", "import time; print('here', flush=True); time.sleep(600)")
WHO_AM_I = """
import os
print(os.getuid(), os.getgid(), sorted(os.getgroups()))
lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(*[lines[name].strip() for name in ("CapPrm", "CapEff", "CapBnd", "NoNewPrivs")])
print(os.getpid() < 100, os.path.exists("/opt/python"), os.getcwd())
"""


def ask(pid: int) -> tuple[str, list[int], str]:
    """Who a program in the place of ``pid`` is, what it may do, and where it is."""
    environment = {"LD_LIBRARY_PATH": "/opt/python/lib"}
    done = run_own_interpreter(pid, ["-I", "-S", "-c", WHO_AM_I], environment=environment)
    assert done.returncode == 0, done.stderr
    who, rights, where = done.stdout.splitlines()
    return who, [int(word, 16) for word in rights.split()], where


@contextlib.contextmanager
def sleeper(*become: str, python: str = sys.executable) -> Iterator[int]:
    command = ["setpriv", *become, python, *SLEEP]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def test_it_runs_as_the_user_and_with_the_groups_of_the_process(everybodys_python: str) -> None:
    become = ("--reuid=12345", "--regid=54321", "--groups=7,9")
    with sleeper(*become, python=everybodys_python) as pid:
        who, rights, where = ask(pid)
    assert who == "12345 54321 [7, 9]"
    assert rights[:2] == [0, 0]
    assert where.endswith(" /")


def test_it_gets_no_capability_that_the_process_has_given_up() -> None:
    with sleeper("--bounding-set=-all,+chown,+kill") as pid:
        who, (permitted, effective, bounding, no_new_privileges), _ = ask(pid)
    assert who.startswith("0 0 ")
    chown_and_kill = 1 << 0 | 1 << 5
    assert (permitted, effective, bounding) == (chown_and_kill,) * 3
    assert no_new_privileges == 1


@pytest.mark.parametrize("bounding", ["-all", "-setpcap"])
def test_without_rights_one_reaches_processes_of_ones_own(bounding: str) -> None:
    code = (
        "import sys\n"
        "from vramscope.injection.own_interpreter import run_own_interpreter\n"
        "done = run_own_interpreter(int(sys.argv[1]), ['-c', 'print(6 * 7)'], environment={})\n"
        "print(done.stdout, done.stderr)\n"
    )
    with sleeper("--bounding-set=-all") as pid:
        powerless = ["setpriv", f"--bounding-set={bounding}", sys.executable, "-c", code, str(pid)]
        done = subprocess.run(powerless, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["42"]


def test_a_process_that_is_gone_is_said_to_be() -> None:
    with sleeper() as pid:
        pass
    with pytest.raises(OSError, match="No such file"):
        run_own_interpreter(pid, ["-c", ""], environment={}, argv0="python")


@needs_container
def test_in_a_container_it_has_the_containers_rights_and_not_those_of_the_host() -> None:
    limits = ("setpriv", "--bounding-set=-all,+net_bind_service", "--inh-caps=-all")
    with container(offered_interpreters()[-1], SLEEP, prefix=limits) as box:
        box.wait_for_line("here")
        who, (permitted, effective, bounding, _), where = ask(box.pid)
    assert who.startswith("0 0 ")
    assert permitted == effective == bounding == 1 << 10
    assert where == "True True /"


@needs_container
def test_in_a_rootless_container_it_is_root_of_the_container_only() -> None:
    everybodys = [one for one in offered_interpreters() if may_be_run_by_all(str(one.executable))]
    if not everybodys:
        pytest.skip("every Python here lies in a folder that only its owner may enter")
    with container(everybodys[0], SLEEP, rootless=12345) as box:
        box.wait_for_line("here")
        who, _, where = ask(box.pid)
        owner = os.stat(f"/proc/{box.pid}").st_uid
    assert who.startswith("0 0 ")
    assert where.startswith("True True ")
    assert owner == 12345


@pytest.fixture
def everybodys_python() -> str:
    for interpreter in offered_interpreters():
        if may_be_run_by_all(str(interpreter.executable)):
            return str(interpreter.executable)
    pytest.skip("every Python here lies in a folder that only its owner may enter")


def may_be_run_by_all(program: str) -> bool:
    command = ["setpriv", "--reuid=12345", "--regid=54321", "--clear-groups", program, "-c", ""]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0

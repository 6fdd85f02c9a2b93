"""Attach to real processes that were never prepared, with a real server, and leave them again."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.attach_client import (
    Ended,
    abandoned_requests,
    running,
    start_vramscope,
    vramscope,
)
from tests.support.job_process import (
    REPOSITORY,
    Api,
    child_environment,
    finish,
    plain_command,
    start,
    wait_until,
)
from tests.support.server_process import ServerProcess
from vramscope._version import __version__

TOKEN = "attached"
TRAINING = REPOSITORY / "tests/support/jobs/cpu_training.py"

SPINS = """
print("ready", flush=True)
while True:
    sum(range(1000))
"""

WORKS = """
import time
print("ready", flush=True)
while True:
    time.sleep(0.005)
"""

BLOCKS = """
import sys, threading
def waits_for_input():
    sys.stdin.buffer.raw.read(1)
print("ready", flush=True)
waits_for_input()
print("released", flush=True)
while not (line := sys.stdin.readline()):
    pass
print([t.name for t in threading.enumerate()], flush=True)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server"), token=TOKEN) as server:
        yield server


@pytest.fixture
def api(server: ServerProcess) -> Api:
    return Api(server.url, TOKEN)


@pytest.fixture(autouse=True)
def nothing_lies_about() -> Iterator[None]:
    before = abandoned_requests()
    yield
    assert abandoned_requests() <= before


def attach(api: Api, job: subprocess.Popen[str], *options: str, run: str = "job") -> Ended:
    options = ("--url", api.url, "--token", TOKEN, "--run", run, *options)
    return vramscope("attach", str(job.pid), *options)


def test_a_loop_that_was_never_prepared_shows_on_the_page(api: Api) -> None:
    with running(sys.executable, "-c", SPINS) as job:
        ended = attach(api, job, run="loop")
        assert ended.code == 0, ended
        found = api.wait_for_run("loop", lambda run: run["state"] == "live", "to be live")
        assert ended.output == (
            f"attached to PID {job.pid}: run loop, rank 0; "
            f"dashboard: {api.url}/runs/{found['id']}\n"
        )
        assert [rank["pid"] for rank in found["ranks"]] == [job.pid]

        again = attach(api, job, "--json", run="another")
        assert again.code == 0
        assert (again.json["already"], again.json["run_name"]) == (True, "loop")
        assert again.json["stopped_us"] >= 0

        assert vramscope("detach", str(job.pid)).output == (
            f"detached from PID {job.pid}: run loop, rank 0; everything measured was delivered\n"
        )
        api.wait_for_run("loop", lambda run: run["state"] == "ended", "to be over")
        assert vramscope("detach", str(job.pid)).output == f"PID {job.pid}: it was not attached\n"

        # One life of one process is one rank of one run, however often it is attached.
        assert attach(api, job, "--json", run="loop").json["run_id"] == found["id"]
        api.wait_for_run("loop", lambda run: run["state"] == "live", "to be live again")
        assert job.poll() is None


@pytest.mark.torch
def test_training_goes_on_bit_for_bit_and_its_steps_are_seen(api: Api) -> None:
    # It ends when it is told to: how many steps it does until then depends on the machine.
    with running(*plain_command(TRAINING, "--steps", "1000000", "--pause-s", "0.01")) as job:
        first = 10  # it has printed the loss of this step
        ended = attach(api, job, "--json", run="training")
        assert ended.code == 0, ended
        found = api.wait_for_run(
            "training", lambda run: (run["ranks"][0]["step"] or 0) > 10, "steps to come"
        )
        assert vramscope("detach", str(job.pid)).code == 0
        assert attach(api, job, "--json", run="training").json["run_id"] == found["id"]
        job.send_signal(signal.SIGTERM)
        code, output, errors = finish(job)
    assert (code, errors.splitlines()[-1]) == (0, "done")
    last = int(output.splitlines()[-1].partition(" ")[0])
    twin = finish(start(plain_command(TRAINING, "--steps", str(last))))
    assert (code, output) == (twin[0], twin[1].partition("\n")[2])
    found = api.wait_for_run("training", lambda run: run["state"] == "ended", "to end")
    assert 0 < found["ranks"][0]["step"] < last + 10 - first  # since the second time


def test_a_blocked_main_thread_is_waited_for_then_given_up_with_its_stack(api: Api) -> None:
    with running(sys.executable, "-c", BLOCKS) as job:
        ended = attach(api, job, "--wait", "1.2", "--json", run="blocked")
        assert ended.code == 1
        assert ended.json["kind"] == "blocked"
        armed, given_up, *stack = ended.errors.splitlines()
        assert armed.startswith(f"vramscope: armed, waiting: the main thread of process {job.pid}")
        assert "given up after 1.2 s" in given_up
        assert any("waits_for_input" in line for line in stack), stack
        # What is armed still runs when the main thread comes back, and must find nothing to do.
        assert job.stdin is not None
        assert job.stdout is not None
        job.stdin.write("x")
        job.stdin.flush()
        assert job.stdout.readline() == "released\n"
        job.stdin.write("what runs?\n")
        job.stdin.flush()
        assert job.stdout.readline() == "['MainThread']\n"
        assert finish(job)[0] == 0


def test_a_blocked_main_thread_is_attached_when_it_comes_back(api: Api) -> None:
    with running(sys.executable, "-c", BLOCKS) as job:
        options = ["--url", api.url, "--token", TOKEN, "--run", "patient"]
        client = start_vramscope("attach", str(job.pid), *options)
        assert client.stderr is not None
        assert "armed, waiting" in client.stderr.readline()
        assert job.stdin is not None
        job.stdin.write("x")
        job.stdin.flush()
        code, output, _ = finish(client)
        assert (code, output.partition(";")[0]) == (
            0,
            f"attached to PID {job.pid}: run patient, rank 0",
        )


def test_who_interrupts_the_wait_leaves_the_process_alone(api: Api) -> None:
    with running(sys.executable, "-c", BLOCKS) as job:
        client = start_vramscope("attach", str(job.pid), "--url", api.url, "--token", TOKEN)
        assert client.stderr is not None
        assert "armed, waiting" in client.stderr.readline()
        client.send_signal(signal.SIGINT)
        code, output, errors = finish(client)
        assert (code, output) == (130, "")
        assert errors == f"vramscope: given up: process {job.pid} is not waited for any more\n"
        assert job.poll() is None


def test_a_process_that_ends_meanwhile_is_said_to_have_ended(api: Api) -> None:
    with running(sys.executable, "-c", BLOCKS) as job:
        client = start_vramscope("attach", str(job.pid), "--url", api.url, "--token", TOKEN)
        assert client.stderr is not None
        assert "armed, waiting" in client.stderr.readline()
        job.kill()
        job.wait()
        code, _, errors = finish(client)
        assert (code, errors) == (2, f"vramscope: process {job.pid} has ended before it answered\n")


def bare_python() -> str:
    """This Python without its virtual environment: it has no vramscope."""
    return str(Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}"))


def bare_environment(**extra: str) -> dict[str, str]:
    names = child_environment()
    return {name: names[name] for name in names if not name.startswith("PYTHON")} | extra


def test_without_vramscope_the_error_is_the_command_that_installs_it(api: Api) -> None:
    with running(bare_python(), "-c", WORKS, environment=bare_environment()) as job:
        ended = attach(api, job, "--json")
        assert ended.code == 1
        assert ended.json["kind"] == "not_importable"
        command = f"{bare_python()} -m pip install vramscope=={__version__}"
        assert f"cannot import vramscope; install it there with: {command}" in ended.errors
        assert "nothing" not in Path(f"/proc/{job.pid}/status").read_text()
        assert vramscope("detach", str(job.pid)).output == f"PID {job.pid}: it was not attached\n"


# What the real one does, without a network: afterwards vramscope can be imported from this folder.
PIP = """
import os, sys
sys.stderr.write("this pip was run as: " + " ".join(sys.argv[1:]))
here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
for source in {sources!r}:
    os.symlink(source, os.path.join(here, os.path.basename(source)))
"""


def fake_pip(folder: Path, code: str) -> Path:
    (folder / "pip").mkdir()
    (folder / "pip/__init__.py").touch()
    (folder / "pip/__main__.py").write_text(code)
    return folder


def test_install_installs_it_and_attaches(api: Api, tmp_path: Path) -> None:
    modules: list[Any] = [__import__(name) for name in ("vramscope", "vramscope_protocol")]
    modules += [__import__(name) for name in ("msgspec", "websockets")]
    sources = [str(Path(module.__file__).parent) for module in modules]
    site = fake_pip(tmp_path, PIP.format(sources=sources))
    environment = bare_environment(PYTHONPATH=str(site))
    with running(bare_python(), "-c", WORKS, environment=environment) as job:
        ended = attach(api, job, "--install", run="installed")
        assert ended.code == 0, ended
        assert (site / "vramscope").is_symlink()
        # The process has looked into that folder before there was a vramscope in it.
        api.wait_for_run("installed", lambda run: run["state"] == "live", "to be live")


def test_an_install_that_fails_shows_what_pip_said(api: Api, tmp_path: Path) -> None:
    site = fake_pip(tmp_path, "raise SystemExit('no such version')")
    environment = bare_environment(PYTHONPATH=str(site))
    with running(bare_python(), "-c", WORKS, environment=environment) as job:
        ended = attach(api, job, "--install")
    assert ended.code == 1
    command = shlex.join([bare_python(), "-m", "pip", "install", f"vramscope=={__version__}"])
    assert f"this failed with exit code 1: {command}\n    no such version" in ended.errors


def test_what_cannot_be_attached_to_is_told_apart(api: Api) -> None:
    with running(sys.executable, "-c", WORKS) as job:
        sleeping = subprocess.Popen(["sleep", "60"])
        try:
            ended = vramscope("attach", str(job.pid), str(sleeping.pid), "--url", api.url,
                              "--token", TOKEN, "--run", "several", "--json")  # fmt: skip
            assert ended.code == 1
            assert [one["ok"] for one in ended.json] == [True, False]
            assert ended.json[1]["kind"] == "not_python"
        finally:
            sleeping.kill()
            sleeping.wait()
    gone = vramscope("attach", str(job.pid))
    assert gone.code == 2
    assert str(job.pid) in gone.errors


def test_options_are_refused_before_anything_happens() -> None:
    refused = vramscope("attach", str(os.getpid()), "--rate-hz", "often")
    assert (refused.code, refused.output) == (2, "")
    assert refused.errors.startswith("vramscope: rate_hz: expected a rate in Hz")
    assert vramscope("attach").code == 2
    assert vramscope("attach", "--all", "1").code == 2
    assert vramscope("attach", "first").code == 2
    assert vramscope("detach").code == 2


def test_a_token_never_shows_in_the_process_list(api: Api) -> None:
    with running(sys.executable, "-c", WORKS) as job:
        assert vramscope("attach", str(job.pid), VRAMSCOPE_URL=api.url, VRAMSCOPE_TOKEN=TOKEN,
                         VRAMSCOPE_RUN="by_variables").code == 0  # fmt: skip
        api.wait_for_run("by_variables", lambda run: run["state"] == "live", "to be live")


def test_the_threads_of_the_job_are_its_own_again_after_detach(api: Api) -> None:
    with running(sys.executable, "-c", WORKS) as job:
        tasks = Path(f"/proc/{job.pid}/task")
        before = len(list(tasks.iterdir()))
        descriptors = Path(f"/proc/{job.pid}/fd")
        open_before = sorted(os.readlink(each) for each in descriptors.iterdir())
        for _ in range(3):
            assert attach(api, job, run="rounds").code == 0
            assert vramscope("detach", str(job.pid)).code == 0
        wait_until(lambda: len(list(tasks.iterdir())), lambda n: n == before, "threads to end")
        assert sorted(os.readlink(each) for each in descriptors.iterdir()) == open_before

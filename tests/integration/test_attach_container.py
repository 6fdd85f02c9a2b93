"""Attach to a job in a container: from the host, and from inside."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence

import pytest

from tests.support.attach_client import Ended, vramscope
from tests.support.container import Container, container, why_no_containers
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from tests.support.job_process import Api
from tests.support.server_process import ServerProcess

TOKEN = "attached"
WORKS = (
    "-c",
    "import time\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.005)",
)
NO_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")

pytestmark = pytest.mark.skipif(
    why_no_containers() is not None, reason=f"no containers here: {why_no_containers()}"
)


def one_of_each_method() -> list[OfferedInterpreter]:
    """The newest Python that is reached by a pending call, and one that is reached by its own."""
    offered = offered_interpreters()
    older = [one for one in offered if one.version < (3, 14)]
    newer = [one for one in offered if one.version >= (3, 14)]
    return [*older[-1:], *newer[-1:]]


def for_everybody() -> OfferedInterpreter:
    """A Python below folders that every user may enter."""
    for interpreter in offered_interpreters():
        command = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
        asked = [*command, str(interpreter.executable), "-c", ""]
        if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return interpreter
    pytest.skip("every Python here lies in a folder that only its owner may enter")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server"), token=TOKEN) as server:
        yield server


@pytest.fixture
def api(server: ServerProcess) -> Api:
    return Api(server.url, TOKEN)


def attach_options(api: Api, run: str) -> list[str]:
    return ["--url", api.url, "--token", TOKEN, "--run", run, "--json"]


def inside(box: Container, *arguments: str, prefix: Sequence[str] = ()) -> Ended:
    """Run one command of vramscope in the container."""
    command = box.command([*prefix, box.python, "-m", "vramscope", *arguments])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def temporary_files(box: Container) -> str:
    """Not what is shown inside of a checkout that lies in /tmp: others work there as well."""
    command = box.command(["find", "/tmp", "/dev/shm", "-xdev", "-mindepth", "1"])
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("interpreter", one_of_each_method(), ids=str)
def test_from_the_host_and_from_inside_it_is_the_same_run(
    api: Api, interpreter: OfferedInterpreter
) -> None:
    run = f"container-{interpreter}"
    with container(interpreter, WORKS) as box:
        box.wait_for_line("ready")
        before = temporary_files(box)
        attached = vramscope("attach", str(box.pid), *attach_options(api, run))
        assert attached.code == 0, attached
        found = api.wait_for_run(run, lambda run: run["state"] == "live", "to be live")
        assert [rank["pid"] for rank in found["ranks"]] == [1]

        again = inside(box, "attach", "1", *attach_options(api, "another"))
        assert again.code == 0, again
        assert (again.json["already"], again.json["run_id"]) == (True, found["id"])

        detached = inside(box, "detach", "1")
        assert detached.code == 0, detached
        api.wait_for_run(run, lambda run: run["state"] == "ended", "to be over")
        assert temporary_files(box) == before


def test_without_vramscope_inside_the_error_is_the_command_that_installs_it_there(
    api: Api,
) -> None:
    with container(offered_interpreters()[0], WORKS, with_vramscope=False) as box:
        box.wait_for_line("ready")
        before = temporary_files(box)
        refused = vramscope("attach", str(box.pid), *attach_options(api, "without"))
        assert refused.code == 1
        assert f"nsenter --all --target={box.pid} " in refused.errors
        assert "pip install" in refused.errors
        assert box.python in refused.errors
        assert temporary_files(box) == before


@pytest.mark.parametrize("interpreter", one_of_each_method(), ids=str)
def test_a_container_without_any_capability_is_attached_to_from_both_sides(
    api: Api, interpreter: OfferedInterpreter
) -> None:
    with container(interpreter, WORKS, prefix=NO_RIGHTS) as box:
        box.wait_for_line("ready")
        for run, attached in (
            ("outside", vramscope("attach", str(box.pid), *attach_options(api, "outside"))),
            ("inside", inside(box, "attach", "1", *attach_options(api, "x"), prefix=NO_RIGHTS)),
        ):
            assert attached.code == 0, attached
            assert attached.json["already"] is (run == "inside")


def test_a_rootless_container_is_attached_to_from_the_host(api: Api) -> None:
    with container(for_everybody(), WORKS, rootless=12345) as box:
        box.wait_for_line("ready")
        before = temporary_files(box)
        attached = vramscope("attach", str(box.pid), *attach_options(api, "rootless"))
        assert attached.code == 0, attached
        api.wait_for_run("rootless", lambda run: run["state"] == "live", "to be live")
        assert vramscope("detach", str(box.pid)).code == 0
        assert temporary_files(box) == before


def test_a_container_that_cannot_be_written_to_is_said_to_be(api: Api) -> None:
    read_only = "mount -t tmpfs -o ro none /tmp\nmount -t tmpfs -o ro none /dev/shm\n"
    with container(offered_interpreters()[0], WORKS, setup=read_only) as box:
        box.wait_for_line("ready")
        refused = vramscope("attach", str(box.pid), *attach_options(api, "read-only"))
        assert refused.code == 1
        assert "give it a /tmp or /dev/shm that can be written to" in refused.errors

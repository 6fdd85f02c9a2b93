"""Attach to every Python that this machine offers, leave it again, and again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attach_client import running, vramscope
from tests.support.interpreters import (
    OfferedInterpreter,
    environment_for,
    missing_versions,
    offered_interpreters,
)
from tests.support.job_process import REPOSITORY, Api, finish, foreign_lines, wait_until
from tests.support.server_process import ServerProcess
from vramscope.injection import find_interpreter, inject

ROUNDS = 2
LINES = 160  # more than there are places for lines
FEW_LINES = 8  # each starts an interpreter
TOKEN = "attached"
CHECKS_ITSELF = str(REPOSITORY / "tests/support/jobs/checked_arithmetic.py")

every_interpreter = pytest.mark.parametrize(
    "interpreter",
    [
        *(pytest.param(one, id=str(one)) for one in offered_interpreters()),
        *(
            pytest.param(
                None,
                id=f"{major}.{minor}",
                marks=pytest.mark.skip(reason=f"this machine has no Python {major}.{minor}"),
            )
            for major, minor in missing_versions()
        ),
    ],
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server"), token=TOKEN) as server:
        yield server


@every_interpreter
def test_a_job_is_attached_and_left_and_computes_what_it_did_before(
    server: ServerProcess, interpreter: OfferedInterpreter
) -> None:
    api = Api(server.url, TOKEN)
    run = f"python-{interpreter}"
    command = (str(interpreter.executable), CHECKS_ITSELF)
    with running(*command, environment=environment_for(interpreter)) as job:
        threads = thread_count(job)
        for _ in range(ROUNDS):
            attached = vramscope(
                "attach", str(job.pid), "--url", api.url, "--token", TOKEN, "--run", run, "--json"
            )
            assert attached.code == 0, attached
            by_itself = interpreter.version >= (3, 14)
            assert attached.json["method"] == ("remote_exec" if by_itself else "pending_call")
            found = api.wait_for_run(run, lambda run: run["state"] == "live", "to be live")
            assert [rank["pid"] for rank in found["ranks"]] == [job.pid]

            detached = vramscope("detach", str(job.pid), "--json")
            assert detached.code == 0, detached
            api.wait_for_run(run, lambda run: run["state"] == "ended", "to be over")
            # The thread that answered the command ends a moment after its answer.
            wait_until(
                lambda: thread_count(job), lambda found: found == threads, "our threads' end"
            )

        code, output, errors = finish(job)
        assert (code, foreign_lines(errors)) == (0, [])
        assert output.startswith("checked ")


@every_interpreter
def test_line_after_line_arrives_while_the_job_computes(
    interpreter: OfferedInterpreter, tmp_path: Path
) -> None:
    arrived = tmp_path / "arrived"
    arrived.touch()
    script = tmp_path / "line.py"
    script.write_text(f"with open({str(arrived)!r}, 'ab') as file: file.write(b'.')\n")
    command = (str(interpreter.executable), CHECKS_ITSELF)
    with running(*command, environment=environment_for(interpreter)) as job:
        target = find_interpreter(job.pid)
        assert (target.version, target.how == "remote_exec") == (
            interpreter.version,
            interpreter.version >= (3, 14),
        )
        lines = FEW_LINES if target.how == "remote_exec" else LINES
        for number in range(lines):
            # The queue of the interpreter holds 32; the one place of remote_exec, one.
            if target.how == "remote_exec" or number % 16 == 0:
                wait_for_size(arrived, number)
            inject(target, script.read_bytes(), script=str(script))
        wait_for_size(arrived, lines)

        code, output, errors = finish(job)
        assert (code, errors) == (0, "")
        assert output.startswith("checked ")


def wait_for_size(file: Path, size: int) -> None:
    wait_until(lambda: file.stat().st_size, lambda found: found == size, f"{size} lines")


def thread_count(job: subprocess.Popen[str]) -> int:
    return len(list(Path(f"/proc/{job.pid}/task").iterdir()))

"""A process that ends, forks or is interrupted while a command is prepared: it never hangs."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.fake_server import wait_until
from tests.support.job_process import REPOSITORY, finish, foreign_lines, start, watched_command
from tests.support.rank_server import RankServer
from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import Command, Decision, Event

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/coordinated_alone.py"
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def server() -> Iterator[RankServer]:
    with RankServer(1) as server:
        yield server


@pytest.fixture
def job(server: RankServer) -> Iterator[Start]:
    """Starts the job, and waits until it trains."""
    started: list[subprocess.Popen[str]] = []

    def begin(*options: str) -> subprocess.Popen[str]:
        command = watched_command(
            JOB, *options, url=server.url, token=server.token, run="alone", options=["--emulate"]
        )
        started.append(start(command))
        server.wait_for_ranks()
        wait_until(lambda: server.step() > 20, "training")
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def prepare(server: RankServer, lead: int, hold_s: float) -> int:
    """Have the job prepare a command for a step that is to come."""
    at_step = server.step() + lead
    server.tell(Command("c", "empty_cache", at_step=at_step, hold_s=hold_s))
    server.wait_for_state("c", "prepared")
    return at_step


def last_receipt(server: RankServer) -> Receipt:
    receipt = server.updates(0, "c")[-1].receipt
    assert receipt is not None
    return receipt


def test_a_process_that_ends_before_its_step_ends_at_once(server: RankServer, job: Start) -> None:
    process = job("--steps", "150")
    prepare(server, 10_000, 20.0)
    code, _, errors = finish(process, 30)
    assert (code, foreign_lines(errors)) == (0, [])
    receipt = last_receipt(server)
    assert receipt.state == "refused"
    assert receipt.message.startswith("The process ended before the command could run.")


def test_ctrl_c_ends_a_process_that_stands_still(server: RankServer, job: Start) -> None:
    process = job()
    at_step = prepare(server, 30, 20.0)
    wait_until(lambda: server.step() == at_step, "it to stand still")
    begun_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    code, _, errors = finish(process, 30)
    assert time.monotonic() - begun_s < 10
    assert code == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    receipt = last_receipt(server)
    assert (receipt.state, receipt.step) == ("failed", at_step)
    assert receipt.message == "interrupted by the job while it ran; nothing was changed"


def test_children_that_are_forked_while_it_stands_still_train_on(
    server: RankServer, job: Start
) -> None:
    process = job("--steps", "400", "--forks")
    at_step = prepare(server, 30, 20.0)
    wait_until(lambda: server.step() == at_step, "it to stand still")
    time.sleep(1.0)
    server.tell(Decision("c", at_step, run=True))
    server.wait_for_state("c", "done")
    code, output, errors = finish(process, 60)
    assert (code, foreign_lines(errors)) == (0, [])
    counted = re.fullmatch(r"forked (\d+)\n", output)
    assert counted is not None
    assert int(counted[1]) > 5
    assert last_receipt(server).message.endswith("until all ranks knew.")


def test_what_its_loop_does_not_ask_for_ends_it_and_the_receipt_arrives(
    server: RankServer, job: Start
) -> None:
    process = job()
    server.tell(Command("c", "stop"))
    code, _, errors = finish(process, 30)
    assert code == 1
    last = errors.rstrip().splitlines()[-1]
    assert re.fullmatch(r"vramscope\.Stopped: a person has stopped training after step \d+", last)
    assert last_receipt(server).state == "done"
    assert server.goodbye is not None
    assert (server.goodbye.reason, server.goodbye.exit_code) == ("exception", 1)


def test_detached_from_outside_while_it_stands_still_it_goes_on(
    server: RankServer, job: Start
) -> None:
    process = job("--steps", "300")
    at_step = prepare(server, 30, 20.0)
    wait_until(lambda: server.step() == at_step, "it to stand still")
    detach = start(
        [*watched_command(JOB, url="", token="", run="")[:3], "detach", str(process.pid)]
    )
    code, output, errors = finish(detach, 60)
    assert code == 0, output + errors
    code, _, errors = finish(process, 30)
    assert (code, foreign_lines(errors)) == (0, [])
    assert last_receipt(server).state == "refused"
    assert "detach" in [server.goodbye.reason if server.goodbye else ""]
    assert server.of_type(Event)

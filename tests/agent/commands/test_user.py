"""Functions of the job as commands: declared, checked, called, and never raising into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import vramscope
from tests.support.fake_clock import FakeClock
from tests.support.fake_device import FakeDevice
from tests.support.recording_outbox import RecordingOutbox
from vramscope.commands.call import Call
from vramscope.commands.handlers import CommandHandlers
from vramscope.commands.queue import CommandQueue
from vramscope.commands.user import DECLARED, UserCommands
from vramscope.commands.user_form import DeclarationError, form_of
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.messages import Command, Decision
from vramscope_protocol.user_commands import MAX_COMMANDS


class Job:
    """A table with one command, and a queue that runs it."""

    def __init__(self, function: Any, **options: Any) -> None:
        self.table = UserCommands()
        self.table.declare(function, form_of(function, "act", **options))
        self.outbox = RecordingOutbox()
        self.handlers = CommandHandlers(FakeDevice(), of_the_job=self.table)
        self.queue = CommandQueue(self.handlers, clock=FakeClock(), emit=self.outbox.put)

    def run(self, **params: Any) -> Receipt:
        self.queue.submit(Command("c", "user.act", params))
        self.queue.run_at_boundary(7)
        receipt = self.outbox.updates("c")[-1].receipt
        assert receipt is not None
        return receipt


def test_it_is_called_with_checked_values_and_answers() -> None:
    calls: list[Any] = []

    def act(n: int, name: str = "x") -> dict[str, Any]:
        calls.append((n, name))
        return {"saved": n}

    receipt = Job(act).run(n=3)
    assert calls == [(3, "x")]
    assert (receipt.state, receipt.step, receipt.result) == ("done", 7, {"saved": 3})
    assert receipt.message == "user.act has run."
    assert receipt.took_s is not None


def test_wrong_values_are_refused_before_the_call() -> None:
    def act(n: int) -> None:
        pytest.fail("called")

    receipt = Job(act).run(n="three")
    assert receipt.state == "refused"
    assert receipt.message == "parameters of user.act: n: expected int, got 'three'"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no room\nat all"), "ValueError: no room"),
        (SystemExit(3), "user.act raised SystemExit: 3; it was kept"),
        (GeneratorExit(), "user.act raised GeneratorExit; it was kept"),
    ],
)
def test_what_it_raises_is_a_failed_receipt(error: BaseException, said: str) -> None:
    def act() -> None:
        raise error

    receipt = Job(act).run()
    assert (receipt.state, receipt.message) == ("failed", said)


def test_ctrl_c_is_for_the_job() -> None:
    def act() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Job(act).run()


def test_an_answer_that_cannot_be_shown_does_not_undo_the_call() -> None:
    class Odd:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("not now")

    receipt = Job(lambda: Odd()).run()
    assert receipt.state == "done"
    assert "Its answer cannot be shown: RuntimeError: not now" in receipt.message


def test_an_answer_in_words_says_that_it_is_one() -> None:
    receipt = Job(lambda: {1}).run()
    assert receipt.result == "{1}"
    assert "Python's words" in receipt.message


def test_it_waits_for_its_place_and_has_its_right() -> None:
    job = Job(lambda: 1, place="agent thread", right="view")
    only_reading = CommandQueue(
        job.handlers, clock=FakeClock(), emit=job.outbox.put, allow=lambda: "observe"
    )
    assert "user.act" in only_reading.accepted()
    only_reading.submit(Command("c", "user.act"))
    only_reading.run_at_boundary(1)
    assert job.outbox.states("c") == ["queued"]
    only_reading.run_on_agent_thread(1)
    assert job.outbox.states("c")[-1] == "done"
    assert (
        "user.act"
        not in CommandQueue(
            Job(lambda: 1).handlers, clock=FakeClock(), emit=job.outbox.put, allow=lambda: "observe"
        ).accepted()
    )


def test_one_for_the_same_step_on_all_ranks_waits_for_that_step() -> None:
    calls: list[int] = []
    step = [1]

    def act(n: int) -> None:
        calls.append(n)

    job = Job(act, same_step=True)
    queue = CommandQueue(job.handlers, clock=FakeClock(), emit=job.outbox.put, step=lambda: step[0])
    queue.submit(Command("c", "user.act", {"n": 5}, at_step=3))
    queue.decide(Decision("c", 3, run=True))
    for number in (2, 3, 4):
        step[0] = number
        queue.run_at_boundary(number)
        assert calls == [5] * (number >= 3)
    assert job.outbox.states("c") == ["prepared", "running", "done"]


def test_there_is_no_dry_run_and_no_other_command() -> None:
    job = Job(lambda: 1)
    with pytest.raises(VramscopeError, match=r"user\.act has no dry run"):
        job.handlers.check(Command("c", "user.act", dry_run=True))
    with pytest.raises(VramscopeError, match=r"no command named 'user.x'; this job has: user.act"):
        job.handlers.spec("user.x")


def test_declaring_again_replaces_and_too_many_are_refused() -> None:
    job = Job(lambda: 1)
    job.table.declare(lambda: 2, form_of(lambda: 2, "act"))
    assert job.handlers.run("user.act", Call({})).result == 2  # type: ignore[union-attr]
    for number in range(MAX_COMMANDS - 1):
        job.table.declare(print, form_of(lambda: 1, f"n{number}"))
    with pytest.raises(DeclarationError, match="64 commands are declared already"):
        job.table.declare(print, form_of(lambda: 1, "more"))
    assert len(job.table.forms()) == MAX_COMMANDS


@pytest.fixture
def clean() -> Iterator[None]:
    yield
    DECLARED._declared.clear()


@pytest.mark.usefixtures("clean")
def test_the_decorator_leaves_the_function_as_it_is_and_never_raises(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def one() -> None: ...

    assert vramscope.command(one) is one
    assert vramscope.command("second", right="view")(one) is one
    assert vramscope.command()(one) is one
    assert DECLARED.names() == ["user.one", "user.second"]
    assert capsys.readouterr().err == ""

    def wrong(x: list[int]) -> None: ...

    assert vramscope.command(wrong) is wrong
    wrong_call: Any = vramscope.command
    assert wrong_call(5)(one) is one
    assert wrong_call("x", right="root")(one) is one
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("vramscope: no command of the job: wrong: x: expected int,")
    assert DECLARED.names() == ["user.one", "user.second"]

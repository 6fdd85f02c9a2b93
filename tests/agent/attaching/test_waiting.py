from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.attaching import waiting
from vramscope.attaching.outcome import AttachError
from vramscope.attaching.request import Request
from vramscope.attaching.waiting import Wait
from vramscope.injection import InjectionError
from vramscope.processes.process import Process, read_process

ANSWER = '{"ok": true, "run_name": "%s", "final": %s}'


@pytest.fixture
def here() -> Process:
    return read_process(os.getpid())


@pytest.fixture
def request_here(here: Process) -> Iterator[Request]:
    with Request(here, {}, {}) as made:
        yield made


@pytest.fixture(autouse=True)
def state_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "native_wait", lambda pid: "sleeping in read (pipe_read)")
    monkeypatch.setattr(waiting, "dump_main_thread", lambda interpreter: '  File "train.py"')


def wait(process: Process, request: Request, wait_s: float = 20, **options: Any) -> Wait:
    interpreter: Any = None
    said: list[str] = options.pop("said", [])
    return Wait(process, interpreter, request, wait_s=wait_s, say=said.append, **options)


def put(request: Request, name: str, text: str = "") -> None:
    path = Path(request.folder, name)
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def take(request: Request) -> None:
    os.rename(f"{request.folder}/request.json", f"{request.folder}/picked_up")


class Clock:
    """A time that passes only while somebody sleeps, with something to do at given moments."""

    def __init__(self, **at: Callable[[], object]) -> None:
        self._at = {float(name[1:].replace("_", ".")): do for name, do in at.items()}
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        for moment in sorted(self._at):
            if moment <= self.now_s:
                self._at.pop(moment)()


def test_the_answer_of_the_process_is_the_answer(here: Process, request_here: Request) -> None:
    take(request_here)
    put(request_here, "answer.json", ANSWER % ("train", "true"))
    said: list[str] = []
    assert wait(here, request_here, said=said).answer().run_name == "train"
    assert said == []


def test_a_better_answer_is_waited_for_a_while(
    here: Process, request_here: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(request_here)
    put(request_here, "answer.json", ANSWER % ("first", "false"))
    final = ANSWER % ("final", "true")
    clock = Clock(s3_0=lambda: put(request_here, "answer.json", final))
    monkeypatch.setattr(waiting, "time", clock)
    assert wait(here, request_here).answer().run_name == "final"

    put(request_here, "answer.json", ANSWER % ("still the first", "false"))
    assert wait(here, request_here).answer().run_name == "still the first"
    assert clock.now_s > waiting.PAGE_WAIT_S


def test_what_blocks_is_told_once_and_it_is_armed_again(
    here: Process, request_here: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    def come_back() -> None:
        take(request_here)
        put(request_here, "answer.json", ANSWER % ("late", "true"))

    clock = Clock(s7_5=come_back)
    monkeypatch.setattr(waiting, "time", clock)
    said: list[str] = []
    armed: list[float] = []
    waits = wait(here, request_here, said=said, arm_again=lambda: armed.append(clock.now_s))
    assert waits.answer().run_name == "late"
    state = "sleeping in read (pipe_read)"
    assert said == [f"armed, waiting: the main thread of process {here.pid} is {state}"]
    assert [round(moment) for moment in armed] == [2, 4, 6]


def test_given_up_it_is_taken_back_and_the_stack_is_shown(
    here: Process, request_here: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "time", Clock())
    with pytest.raises(AttachError, match="given up after 5 s") as raised:
        wait(here, request_here, 5).answer()
    assert raised.value.kind == "blocked"
    assert "it is sleeping in read (pipe_read)" in str(raised.value)
    assert raised.value.detail == '  File "train.py"'
    assert not Path(request_here.folder, "request.json").exists()


def test_a_process_that_takes_it_at_the_last_moment_is_waited_for(
    here: Process, request_here: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Between the last look and the attempt to take the request back.
    taken = False

    def is_picked_up() -> bool:
        nonlocal taken
        if clock.now_s > 5 and not taken:
            taken = True
            take(request_here)
            put(request_here, "answer.json", ANSWER % ("just in time", "true"))
            return False
        return taken

    clock = Clock()
    monkeypatch.setattr(waiting, "time", clock)
    monkeypatch.setattr(request_here, "is_picked_up", is_picked_up)
    assert wait(here, request_here, 5).answer().run_name == "just in time"


def test_a_process_that_never_answers_is_not_waited_for_for_ever(
    here: Process, request_here: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(request_here)
    monkeypatch.setattr(waiting, "time", Clock())
    with pytest.raises(AttachError, match="does not answer within 30 s") as raised:
        wait(here, request_here, 5).answer()
    assert raised.value.kind == "unanswered"


def test_a_process_that_ends_is_noticed() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as job:
        process = read_process(job.pid)
        with Request(process, {}, {}) as request:
            job.kill()
            with pytest.raises(AttachError, match="has ended before it answered") as raised:
                wait(process, request).answer()
    assert raised.value.kind == "gone"


def test_without_a_stack_it_is_given_up_all_the_same(
    here: Process, request_here: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise InjectionError("another program traces it", "traced")

    monkeypatch.setattr(waiting, "dump_main_thread", refuse)
    monkeypatch.setattr(waiting, "time", Clock())
    with pytest.raises(AttachError, match="given up after 0 s") as raised:
        wait(here, request_here, 0).answer()
    assert raised.value.detail == ""

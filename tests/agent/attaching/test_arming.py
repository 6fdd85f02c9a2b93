"""How a line is armed and taken back, with an ``inject`` that only notes what it is given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.attaching import arming as arming_module
from vramscope.attaching.arming import Arming
from vramscope.attaching.outcome import AttachError
from vramscope.attaching.request import Request
from vramscope.injection import Injected, InjectionError
from vramscope.processes.process import read_process


class Target:
    """The process, as far as it has a place for one script that waits."""

    def __init__(self, how: str) -> None:
        self.interpreter: Any = SimpleNamespace(pid=os.getpid(), how=how)
        self.scripts: list[str] = []
        self.refusals: list[InjectionError] = []

    def inject(self, interpreter: object, line: bytes, *, script: str) -> Injected:
        if self.refusals:
            raise self.refusals.pop(0)
        self.scripts.append(script)
        return Injected(0.0, self.interpreter.how)


@pytest.fixture
def request_folder() -> Iterator[Request]:
    with Request(read_process(os.getpid()), {"action": "detach"}, {}) as request:
        yield request


def arming_in(target: Target, request: Request, monkeypatch: pytest.MonkeyPatch) -> Arming:
    monkeypatch.setattr(arming_module, "inject", target.inject)
    return Arming(target.interpreter, os.getpid(), request)


def pick_up(request: Request) -> None:
    Path(request.folder, "request.json").rename(Path(request.folder, "picked_up"))


def test_a_process_that_is_busy_is_asked_again_as_long_as_it_may_be(
    request_folder: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target("pending_call")
    arming = arming_in(target, request_folder, monkeypatch)
    target.refusals = [InjectionError("its queue is full", "busy")] * 2
    assert arming.arm(60.0).method == "pending_call"
    target.refusals = [InjectionError("its queue is full", "busy")]
    with pytest.raises(AttachError, match="its queue is full"):
        arming.arm()


@pytest.mark.parametrize("times", [1, 2])
def test_a_script_that_may_still_wait_is_replaced_before_its_folder_goes(
    request_folder: Request, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    # Whoever makes a folder of that name afterwards would have the process run what lies there.
    target = Target("remote_exec")
    arming = arming_in(target, request_folder, monkeypatch)
    for _ in range(times):
        arming.arm()
    if times == 2:
        pick_up(request_folder)  # by the first of the two: the second may wait
    arming.take_back()
    assert target.scripts == [f"{request_folder.folder}/line.py"] * times + [os.devnull]
    request_folder.close()
    assert not os.path.exists(request_folder.folder)


@pytest.mark.parametrize("how", ["remote_exec", "pending_call"])
def test_nothing_is_taken_back_where_nothing_can_wait_for_the_folder(
    request_folder: Request, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    target = Target(how)
    arming = arming_in(target, request_folder, monkeypatch)
    arming.arm()
    if how == "remote_exec":
        pick_up(request_folder)
    arming.take_back()
    assert len(target.scripts) == 1


@pytest.mark.parametrize(("kind", "stays"), [("failed", True), ("gone", False)])
def test_a_folder_whose_script_cannot_be_taken_back_keeps_its_name_taken(
    request_folder: Request, monkeypatch: pytest.MonkeyPatch, kind: str, stays: bool
) -> None:
    target = Target("remote_exec")
    arming = arming_in(target, request_folder, monkeypatch)
    arming.arm()
    target.refusals = [InjectionError("no", kind)]
    arming.take_back()
    request_folder.close()
    folder = Path(request_folder.folder)
    assert folder.exists() is stays
    if stays:
        assert not list(folder.iterdir())
        folder.rmdir()

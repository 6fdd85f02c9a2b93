"""Training stands still until resumed, or stopped, or the time is over; Ctrl-C comes through."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.fake_server import wait_until
from vramscope.commands import pause as pause_module
from vramscope.commands.call import Call
from vramscope.commands.pause import Pause
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import PauseParams


class Rig:
    """A pause; ``stand_still`` returns when training goes on."""

    def __init__(self) -> None:
        self.progress: list[str] = []
        self.pause = Pause(lambda call, text: self.progress.append(text))

    def stand_still(self, max_s: float = 20.0) -> Receipt:
        return self._run("pause", Call(PauseParams(max_s), step=7, id="p"))

    def resume(self) -> Receipt:
        return self._run("resume", Call())

    def _run(self, name: str, call: Call) -> Receipt:
        receipt = self.pause.handlers()[name](call)
        assert isinstance(receipt, Receipt)
        return receipt

    def once_still(self, act: Callable[[], Any]) -> threading.Thread:
        """Another thread that acts when training stands still."""
        return once(lambda: self.pause._ended is not None, act)


def once(is_so: Callable[[], bool], act: Callable[[], Any]) -> threading.Thread:
    """Another thread that acts when something is so."""

    def wait_and_act() -> None:
        wait_until(is_so, "what the test waits for", 20)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


def test_it_ends_by_itself_and_says_how_long_it_was() -> None:
    receipt = Rig().stand_still(0.2)
    assert receipt.state == "done"
    assert (
        receipt.message == "Training stood still for 0.2 s after step 7, until the time was over."
    )


def test_resuming_ends_it() -> None:
    rig = Rig()
    answers: list[Receipt] = []
    thread = rig.once_still(lambda: answers.append(rig.resume()))
    begun_s = time.monotonic()
    receipt = rig.stand_still()
    thread.join()
    assert time.monotonic() - begun_s < 10
    assert receipt.message.endswith("until it was resumed.")
    assert answers[0].message == "Training goes on."


def test_resuming_what_does_not_stand_still_does_nothing() -> None:
    rig = Rig()
    assert rig.resume().message == "Training did not stand still."
    assert rig.stand_still(0.1).message.endswith("until the time was over.")


def test_whoever_has_a_reason_ends_it() -> None:
    rig = Rig()
    thread = rig.once_still(lambda: rig.pause.end("it was told to stop"))
    assert rig.stand_still().message.endswith("until it was told to stop.")
    thread.join()
    assert not rig.pause.end("nothing stands still")


def test_an_agent_that_leaves_ends_it_and_there_is_none_afterwards() -> None:
    rig = Rig()
    thread = rig.once_still(lambda: rig.pause.close("the agent has left"))
    assert rig.stand_still().message.endswith("until the agent has left.")
    thread.join()
    begun_s = time.monotonic()
    rig.stand_still()
    assert time.monotonic() - begun_s < 1


def test_ctrl_c_comes_through() -> None:
    rig = Rig()
    thread = rig.once_still(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        rig.stand_still()
    thread.join()
    assert rig.resume().message == "Training did not stand still."


def test_it_says_now_and_then_that_it_still_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pause_module, "PROGRESS_INTERVAL_S", 0.1)
    rig = Rig()
    thread = once(lambda: bool(rig.progress), rig.resume)
    rig.stand_still(100.0)
    thread.join()
    assert rig.progress[0] == "paused, for 100 s more"

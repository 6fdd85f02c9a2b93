"""The command that watches modules for a few steps."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from vramscope.commands import modules
from vramscope.commands.call import Call
from vramscope.commands.modules import module_handlers
from vramscope.modules.module_account import Reading
from vramscope_protocol.command_table import command_spec
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import VramscopeError


class FakeProfile:
    """A profile of that many steps, without any module."""

    def __init__(self, read: Any, steps: int, roots: Any) -> None:
        self.read = read
        self.left = steps
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def step_ended(self) -> bool:
        self.left -= 1
        return self.left == 0

    def report(self) -> dict[str, Any]:
        return {"modules": [{"path": "Model"}], "added_ms_per_step": 0.25}


@pytest.fixture
def profiles(monkeypatch: pytest.MonkeyPatch) -> list[FakeProfile]:
    made: list[FakeProfile] = []

    def make(read: Any, steps: int, roots: Any) -> FakeProfile:
        made.append(FakeProfile(read, steps, roots))
        return made[-1]

    monkeypatch.setattr(modules, "ModuleProfile", make)
    monkeypatch.setitem(sys.modules, "torch.nn.modules.module", types.ModuleType("module"))
    return made


def call(steps: int = 3) -> Call:
    return Call(command_spec("profile_modules").params(steps=steps))


def read(in_backward: bool) -> Reading:
    del in_backward
    return Reading(0, 0)


def test_it_watches_as_many_steps_as_asked_for(profiles: list[FakeProfile]) -> None:
    watch: Any = module_handlers(read, tuple)["profile_modules"](call(3))
    assert [watch.poll(step) for step in (11, 12)] == [None, None]
    assert watch.poll_on_agent_thread() is None
    assert watch.progress == "2 of 3 steps"
    receipt = watch.poll(13)
    assert isinstance(receipt, Receipt)
    assert receipt.state == "done"
    assert receipt.message == "1 modules over 3 steps; watching added 0.2 ms a step."
    assert receipt.result["modules"] == [{"path": "Model"}]
    assert profiles[0].calls == ["start", "stop"]


def test_when_it_is_ended_the_hooks_go_and_what_was_seen_is_told(
    profiles: list[FakeProfile],
) -> None:
    handler = module_handlers(read, tuple)["profile_modules"]
    watch: Any = handler(call(3))
    watch.poll(11)
    receipt = watch.cancel("the process ended")
    assert receipt.state == "failed"
    assert receipt.message.startswith("the process ended; 1 modules over 1 steps")
    assert receipt.result is not None
    assert profiles[0].calls == ["start", "stop"]
    handler(call(1))  # another one may begin


def test_one_at_a_time(profiles: list[FakeProfile]) -> None:
    handler = module_handlers(read, tuple)["profile_modules"]
    handler(call())
    with pytest.raises(VramscopeError, match="already"):
        handler(call())
    assert len(profiles) == 1


@pytest.mark.parametrize(
    ("reason", "words"),
    [("modules", "no modules"), ("compile", "torch.compile"), ("passive", "cannot be read")],
)
def test_where_it_must_not_hook_it_says_why(
    profiles: list[FakeProfile], monkeypatch: pytest.MonkeyPatch, reason: str, words: str
) -> None:
    if reason == "modules":
        monkeypatch.delitem(sys.modules, "torch.nn.modules.module")
    if reason == "compile":
        monkeypatch.setattr(modules, "compiled_reason", lambda: "the job uses torch.compile")
    handler = module_handlers((lambda _: None) if reason == "passive" else read, tuple)[
        "profile_modules"
    ]
    with pytest.raises(VramscopeError, match=words):
        handler(call())
    assert profiles == []

"""Which steps are taken in which order, and what each refusal becomes; the real thing is in
tests/integration/test_attach.py."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vramscope import __version__
from vramscope.attaching import arming as arming_module
from vramscope.attaching import attach as attach_module
from vramscope.attaching.attach import attach_process, detach_process
from vramscope.attaching.importable import Importable
from vramscope.attaching.outcome import AttachError
from vramscope.injection import Injected, InjectionError, NotInjectable
from vramscope.processes.obstacle import Obstacle

FOUND = Importable("/bin/python", (3, 11), True, version=__version__, folders=("/site",))


class World:
    """Everything around an attach of this very process, each part replaceable."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.how = "pending_call"
        self.obstacles: dict[str, Obstacle] = {}
        self.answers: list[Importable] = [FOUND]
        self.asked: list[dict[str, Any]] = []
        self.refusals: list[InjectionError] = []
        self.answer: dict[str, Any] = {"ok": True, "run_name": "train", "rank": 3}
        self.installed = 0
        self.said: list[str] = []
        self.server_options: dict[str, str] = {}
        replaced: dict[str, Callable[..., Any]] = {
            "why_not_reachable": lambda process, method: self.obstacles.get(method),
            "find_interpreter": lambda pid: self,
            "ask_importable": lambda process: self.answers.pop(0),
            "install": self._install,
            "server_options": lambda process, environment: self.server_options,
            "read_local_server": lambda: None,
        }
        for name, function in replaced.items():
            monkeypatch.setattr(attach_module, name, function)
        monkeypatch.setattr(arming_module, "inject", self._inject)
        monkeypatch.setattr(attach_module, "_TRACED_FOR_S", 0.1)

    pid = os.getpid()

    def _install(self, process: object, importable: object) -> None:
        self.installed += 1

    def _inject(self, interpreter: object, line: bytes, *, script: str) -> Injected:
        if self.refusals:
            raise self.refusals.pop(0)
        folder = Path(script).parent
        assert Path(script).read_bytes() == line
        assert str(folder).encode() in line
        (folder / "request.json").rename(folder / "picked_up")
        self.asked.append(json.loads((folder / "picked_up").read_text()))
        (folder / "answer.json").write_text(json.dumps(self.answer))
        return Injected(140.0, "remote_exec" if self.how == "remote_exec" else "pending_call")

    def attach(self, **options: Any) -> Any:
        return attach_process(self.pid, options.pop("given", {}), say=self.said.append, **options)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_the_process_is_asked_with_the_options_that_were_given(world: World) -> None:
    outcome = world.attach(given={"run": "mine", "rate_hz": None})
    assert world.asked == [{"action": "attach", "options": {"run": "mine"}, "folders": ["/site"]}]
    assert (outcome.pid, outcome.run_name, outcome.rank) == (world.pid, "train", 3)
    assert (outcome.method, outcome.stopped_us) == ("pending_call", 140.0)
    assert world.said == []


def test_a_server_that_it_would_not_find_is_told_unless_one_was_given(world: World) -> None:
    world.server_options = {"url": "http://127.0.0.1:1", "token": "t"}
    world.answers *= 2
    world.attach()
    world.attach(given={"url": "http://box:1"})
    assert [asked["options"] for asked in world.asked] == [
        {"url": "http://127.0.0.1:1", "token": "t"},
        {"url": "http://box:1"},
    ]


def test_detach_needs_no_vramscope_to_be_found(world: World) -> None:
    world.answers = []
    world.answer = {"ok": True, "already": True, "message": "it was not attached"}
    outcome = detach_process(world.pid, say=world.said.append)
    assert (outcome.already, outcome.message) == (True, "it was not attached")
    assert world.asked == [{"action": "detach"}]


@pytest.mark.parametrize("how", ["pending_call", "remote_exec"])
def test_what_stands_in_the_way_is_told_with_what_helps(world: World, how: str) -> None:
    world.how = how
    world.obstacles = {how: Obstacle("traced", "gdb (PID 5) is tracing it", "detach gdb first")}
    with pytest.raises(AttachError) as raised:
        world.attach()
    assert str(raised.value) == (
        f"process {world.pid}: gdb (PID 5) is tracing it; detach gdb first"
    )
    assert (raised.value.kind, world.asked) == ("traced", [])


def test_another_one_who_attaches_just_now_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach_module, "_TRACED_FOR_S", 60.0)
    other = Obstacle("traced", "python (PID 5) is tracing it", "detach it")
    obstacles = [None, other, other, None]
    monkeypatch.setattr(attach_module, "why_not_reachable", lambda *_, method: obstacles.pop(0))
    assert world.attach().ok


def test_what_is_in_the_way_of_tracing_does_not_matter_where_nothing_is_traced(
    world: World,
) -> None:
    world.how = "remote_exec"
    world.obstacles = {"pending_call": Obstacle("seccomp", "ptrace is forbidden", "")}
    assert world.attach().ok


def test_a_process_without_python_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int) -> None:
        raise NotInjectable("it is not a Python process", "not_python")

    monkeypatch.setattr(attach_module, "find_interpreter", refuse)
    with pytest.raises(AttachError, match="it is not a Python process") as raised:
        world.attach()
    assert raised.value.kind == "not_python"


def test_a_number_that_is_no_process_is_gone(world: World) -> None:
    with pytest.raises(AttachError) as raised:
        attach_process(2**22 + 1, {}, say=world.said.append)
    assert raised.value.kind == "gone"


def test_without_vramscope_nothing_is_touched(world: World) -> None:
    world.answers = [Importable("/bin/python", (3, 11), True, is_missing=True)]
    with pytest.raises(AttachError, match="pip install"):
        world.attach()
    assert (world.asked, world.installed) == ([], 0)


def test_it_is_installed_on_request_and_asked_for_again(world: World) -> None:
    world.answers = [Importable("/bin/python", (3, 11), True, is_missing=True), FOUND]
    assert world.attach(install_if_missing=True).ok
    assert world.installed == 1
    assert world.said == ["installing vramscope for /bin/python"]
    world.answers = [FOUND]
    world.attach(install_if_missing=True)
    assert world.installed == 1


def test_a_process_that_is_busy_is_asked_again_and_not_for_ever(world: World) -> None:
    world.refusals = [InjectionError("its queue is full", "busy")] * 3
    assert world.attach().ok
    world.answers = [FOUND]
    world.refusals = [InjectionError("its queue is full", "busy")] * 3
    with pytest.raises(AttachError, match="its queue is full"):
        world.attach(wait_s=0)
    world.answers = [FOUND]
    world.refusals = [InjectionError("it has ended", "gone")]
    with pytest.raises(AttachError, match="it has ended"):
        world.attach()


def test_a_refusal_of_the_process_is_an_error_here(world: World) -> None:
    world.answer = {"ok": False, "message": "rate_hz: expected a rate in Hz"}
    with pytest.raises(AttachError, match=f"process {world.pid}: rate_hz: expected"):
        world.attach()

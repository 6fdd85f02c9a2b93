from __future__ import annotations

import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from tests.agent.cli.test_each_process import outcome
from vramscope.cli import attach
from vramscope.cli.problem import Problem
from vramscope.processes.process import user_name

Asked = list[tuple[int, Mapping[str, object], dict[str, Any]]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    seen: Asked = []

    def attach_process(pid: int, options: Mapping[str, object], **how: Any) -> Any:
        seen.append((pid, options, how))
        return outcome(pid, already=pid == 5, url="" if pid == 6 else "http://box", message="late")

    monkeypatch.setattr(attach, "attach_process", attach_process)
    for name in list(os.environ):
        if name.startswith("VRAMSCOPE_"):
            monkeypatch.delenv(name)
    return seen


def test_the_line_says_what_came_of_it(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert attach.execute(["4", "5", "6", "4"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "attached to PID 4: run train, rank 0; dashboard: http://box",
        "already attached: PID 5, run train, rank 0; dashboard: http://box",
        "attached to PID 6: run train, rank 0; late",
    ]


def test_options_and_variables_go_to_the_process(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VRAMSCOPE_TOKEN", "secret")
    monkeypatch.setenv("VRAMSCOPE_RUN", "by variable")
    monkeypatch.setenv("VRAMSCOPE_EMULATE", "1")
    attach.execute(["4", "--run", "mine", "--no-local-server", "--install", "--wait", "3"])
    [(_, options, how)] = asked
    assert options == {"token": "secret", "run": "mine", "local_server": False}
    assert (how["install_if_missing"], how["wait_s"]) == (True, 3.0)


@pytest.mark.parametrize(
    "arguments",
    [[], ["--all", "4"], ["x"], ["4", "--rate-hz", "x"], ["4", "--emulate"], ["4", "--wait", "-1"]],
)
def test_bad_usage_is_one_line_and_touches_nothing(asked: Asked, arguments: list[str]) -> None:
    with pytest.raises(Problem) as raised:
        attach.execute(arguments)
    assert raised.value.exit_code == 2
    assert asked == []


def test_all_means_what_can_be_attached_to(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(pid: int, **changes: Any) -> SimpleNamespace:
        own = {"user": user_name(os.geteuid()), "attachable": True, "attached": False}
        return SimpleNamespace(pid=pid, **own | changes)

    processes = [found(4), found(7, attachable=False), found(8, attached=True), found(9)]
    monkeypatch.setattr(attach, "training_processes", lambda: processes)
    assert attach.execute(["--all"]) == 0
    assert [pid for pid, _, _ in asked] == [4, 9]
    monkeypatch.setattr(attach, "training_processes", lambda: processes[1:3])
    with pytest.raises(Problem) as raised:
        attach.execute(["--all"])
    assert raised.value.exit_code == 1

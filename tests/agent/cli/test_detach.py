from __future__ import annotations

from typing import Any

import pytest

from tests.agent.cli.test_each_process import outcome
from vramscope.cli import detach
from vramscope.cli.problem import Problem


def test_what_is_left_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits: list[float] = []

    def detach_process(pid: int, *, wait_s: float, say: object) -> Any:
        waits.append(wait_s)
        return outcome(pid, already=pid == 5, message="it was not attached" if pid == 5 else "done")

    monkeypatch.setattr(detach, "detach_process", detach_process)
    assert detach.execute(["4", "5", "5", "--wait", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "detached from PID 4: run train, rank 0; done",
        "PID 5: it was not attached",
    ]
    assert waits == [2.0, 2.0]


def test_a_number_is_needed() -> None:
    with pytest.raises(Problem) as raised:
        detach.execute([])
    assert raised.value.exit_code == 2

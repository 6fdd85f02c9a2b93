from __future__ import annotations

import os
import subprocess
import sys

import pytest

from vramscope_server.process import process_alive


def test_this_process_lives() -> None:
    assert process_alive(os.getpid())


def test_a_process_of_another_user_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert process_alive(1)


def test_a_process_that_has_ended_does_not() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    assert not process_alive(process.pid)


@pytest.mark.parametrize("pid", [0, -1])
def test_a_number_that_names_a_group_is_no_process(pid: int) -> None:
    assert not process_alive(pid)

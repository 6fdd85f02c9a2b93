"""From Python 3.14 on the process's own Python is asked to arm a script; nothing is stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.attach_targets import COUNT, attach_target
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from vramscope.injection import InjectionError, NotInjectable, find_interpreter, inject

BY_REMOTE_EXEC = [one for one in offered_interpreters() if one.version >= (3, 14)]

pytestmark = pytest.mark.skipif(not BY_REMOTE_EXEC, reason="no Python from 3.14 on here")


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "line.py"
    path.write_bytes(COUNT)
    return str(path)


@pytest.fixture(params=BY_REMOTE_EXEC, ids=str)
def python(request: pytest.FixtureRequest) -> OfferedInterpreter:
    offered: OfferedInterpreter = request.param
    return offered


def test_the_script_runs_once(python: OfferedInterpreter, script: str, tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python", python.executable) as target:
        injected = inject(target.interpreter, COUNT, script=script)
        assert (injected.method, injected.stopped_us) == ("remote_exec", 0.0)
        target.end_unharmed(1)


def test_a_script_is_needed(python: OfferedInterpreter, tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python", python.executable) as target:
        with pytest.raises(ValueError, match="script"):
            inject(target.interpreter, COUNT)
        target.end_unharmed(0)


def test_a_process_that_has_ended(python: OfferedInterpreter, script: str, tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python", python.executable) as target:
        interpreter = target.interpreter
        os.kill(target.pid, signal.SIGKILL)
        target.process.wait(10)
        with pytest.raises(InjectionError, match="has ended") as caught:
            inject(interpreter, COUNT, script=script)
        assert caught.value.kind == "gone"


def test_switched_off_is_known_before_and_said(
    python: OfferedInterpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_DISABLE_REMOTE_DEBUG", "1")
    with attach_target(tmp_path, "working", "python", python.executable) as target:
        with pytest.raises(NotInjectable, match="PYTHON_DISABLE_REMOTE_DEBUG") as caught:
            find_interpreter(target.pid)
        assert caught.value.kind == "disabled"
        target.end_unharmed(0)

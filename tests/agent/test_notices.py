from __future__ import annotations

import io
import sys
import types
from typing import cast

import pytest

from vramscope.notices import Notices, is_stderr_saved, write_line


def test_each_key_is_said_once_in_one_prefixed_line(capfd: pytest.CaptureFixture[str]) -> None:
    notices = Notices()
    notices.say("a", "first\nline")
    notices.say("a", "again")
    notices.say("b", "second")
    captured = capfd.readouterr()
    assert captured.err == "vramscope: first line\nvramscope: second\n"
    assert captured.out == ""


def test_notes_are_what_is_degraded_now() -> None:
    notices = Notices()
    notices.note("nvml", "NVML not found")
    notices.note("spool", "disk full")
    notices.note("spool", "disk still full")
    notices.clear("nvml")
    notices.clear("never noted")
    assert notices.texts() == ["disk still full"]


def test_notes_are_bounded() -> None:
    notices = Notices()
    for number in range(100):
        notices.note(str(number), "text")
    assert len(notices.texts()) == 32


@pytest.mark.parametrize("state", ["none", "closed"])
def test_a_job_without_stderr_is_not_disturbed(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", None if state == "none" else stream)
    write_line("nobody reads this")


def test_a_stderr_of_another_kind_does_not_raise_into_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", object())
    write_line("cannot be written")


def test_only_a_notebook_saves_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    class TerminalInteractiveShell:
        pass

    class EmbeddedShell(TerminalInteractiveShell):
        pass

    class ZMQInteractiveShell:
        pass

    def is_saved(shell: object) -> bool:
        ipython = types.SimpleNamespace(get_ipython=lambda: shell)
        monkeypatch.setitem(sys.modules, "IPython", cast(types.ModuleType, ipython))
        return is_stderr_saved()

    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not is_stderr_saved()
    assert not is_saved(None)
    assert not is_saved(TerminalInteractiveShell())
    assert not is_saved(EmbeddedShell())
    assert is_saved(ZMQInteractiveShell())
    # In the middle of an import, the module is there and empty.
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    assert not is_stderr_saved()


def test_what_a_server_says_cannot_control_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_line("refused: \x1b[2J\x07é\udcff " + "x" * 10_000)
    line = capfd.readouterr().err
    assert line.startswith("vramscope: refused: ?[2J?é? xxx")
    assert len(line) < 1200

"""What a line of the magic does, in this process and against a server that answers by rote."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import vramscope
from tests.support.fake_server import FakeServer, free_port
from vramscope.cli.problem import Problem
from vramscope.notebook.frame import Frame
from vramscope.notebook.magic import Magic
from vramscope.transport.transport import Target
from vramscope_protocol.messages import Register


class FakeShell:
    """Keeps what it was given to show."""

    def __init__(self) -> None:
        self.display_pub = self
        self.user_ns: dict[str, Any] = {"__vsc_ipynb_file__": "/home/ada/probe.ipynb"}
        self.shown: list[dict[str, str]] = []

    def publish(self, data: dict[str, str], metadata: dict[str, Any]) -> None:
        self.shown.append(data)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server
        vramscope.detach()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, list[str]]]:
    """The frames that were asked for: token, run and scopes."""
    asked: list[tuple[str, str, list[str]]] = []

    def open_frame(target: Target, run_id: str, scopes: list[str]) -> Frame:
        asked.append((target.token, run_id, scopes))
        return Frame(f"/frame/{run_id}", "vs_frame", 1_790_000_000_000_000_000)

    monkeypatch.setattr("vramscope.notebook.magic.open_frame", open_frame)
    return asked


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeShell:
    """The shell of a notebook."""
    shell = FakeShell()
    ipython = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", cast(types.ModuleType, ipython))
    monkeypatch.setenv("VRAMSCOPE_SPOOL_DIR", str(tmp_path / "spool"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return shell


def line(server: FakeServer, *more: str) -> str:
    return " ".join([f"--url {server.url} --token {server.token}", *more])


Asked = list[tuple[str, str, list[str]]]


def test_a_line_attaches_and_shows_the_page_of_the_run(
    server: FakeServer, shell: FakeShell, asked: Asked
) -> None:
    Magic(shell).run(line(server, "--height 480"))
    (register,) = server.of_type(Register)
    assert register.run.name == "probe"
    assert asked == [(server.token, register.run.id, ["view", "control"])]
    (shown,) = shell.shown
    assert f'src="{server.url}/frame/{register.run.id}#token=vs_frame' in shown["text/html"]
    assert 'height="480"' in shown["text/html"]
    assert shown["text/plain"] == f"vramscope: run probe at {server.url}/runs/{register.run.id}"


def test_what_is_saved_with_the_notebook_holds_no_token_but_the_frames(
    server: FakeServer, shell: FakeShell, asked: Asked, capfd: pytest.CaptureFixture[str]
) -> None:
    Magic(shell).run(line(server))
    saved = "".join(text for shown in shell.shown for text in shown.values())
    written = capfd.readouterr()
    assert "vs_frame" in saved
    assert server.token not in saved + written.out + written.err


def test_a_second_line_is_the_same_attach(
    server: FakeServer, shell: FakeShell, asked: Asked, capfd: pytest.CaptureFixture[str]
) -> None:
    magic = Magic(shell)
    magic.run(line(server))
    capfd.readouterr()
    magic.run("")
    magic.run(line(server))
    assert capfd.readouterr().err == ""
    magic.run(line(server, "--rate-hz 2"))
    assert "already attached as run probe, with other options" in capfd.readouterr().err
    assert len(server.of_type(Register)) == 1
    assert len(shell.shown) == 4
    assert len({run for _token, run, _scopes in asked}) == 1


def test_a_name_that_was_given_wins(
    server: FakeServer, shell: FakeShell, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    Magic(shell).run(line(server, "--run 'by hand'"))
    vramscope.detach()
    monkeypatch.setenv("VRAMSCOPE_RUN", "by variable")
    Magic(shell).run(line(server))
    names = [register.run.name for register in server.of_type(Register)]
    assert names == ["by hand", "by variable"]


def test_a_page_to_look_at_only_and_reached_by_another_way(
    server: FakeServer, shell: FakeShell, asked: Asked
) -> None:
    Magic(shell).run(line(server, "--view-only --page-url http://localhost:9000"))
    assert [scopes for _token, _run, scopes in asked] == [["view"]]
    assert 'src="http://localhost:9000/frame/' in shell.shown[0]["text/html"]


def test_a_detach_ends_it_and_says_so(
    server: FakeServer, shell: FakeShell, asked: Asked, capfd: pytest.CaptureFixture[str]
) -> None:
    magic = Magic(shell)
    magic.run(line(server))
    magic.run("--detach")
    assert "detached; run probe" in capfd.readouterr().out
    assert server.goodbye is not None
    magic.run("--detach")
    assert "not attached" in capfd.readouterr().err


def test_without_a_server_the_kernel_is_watched_all_the_same(
    shell: FakeShell, capfd: pytest.CaptureFixture[str]
) -> None:
    Magic(shell, wait_s=0.05).run(f"--url http://127.0.0.1:{free_port()} --token t")
    assert (
        "run probe is watched, but no server has answered within 0.05 s" in capfd.readouterr().err
    )
    assert shell.shown == []
    vramscope.detach()


def test_a_server_that_makes_no_frames_is_named(
    server: FakeServer,
    shell: FakeShell,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_arguments: object) -> Frame:
        raise Problem("expected a token with the scope 'view', got agent")

    monkeypatch.setattr("vramscope.notebook.magic.open_frame", refuse)
    Magic(shell).run(line(server))
    said = capfd.readouterr().err
    assert "no page below this cell: expected a token with the scope 'view', got agent" in said
    assert f"it is at {server.url}/runs/" in said
    assert shell.shown == []


def test_a_terminal_gets_the_address(
    server: FakeServer, shell: FakeShell, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vramscope.notebook.magic.is_stderr_saved", lambda: False)
    Magic(shell).run(line(server))
    (shown,) = shell.shown
    assert set(shown) == {"text/plain"}
    assert f"{server.url}/runs/" in shown["text/plain"]
    assert asked == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--nope", "unrecognized arguments: --nope"),
        ("--height 5", "expected 200 to 4000 pixels, got '5'"),
        ("--page-url ftp://x", "expected a server URL"),
        ("--run 'open", "expected options"),
        ("--rate-hz fast", "not attached: rate_hz: expected a rate in Hz"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(
    shell: FakeShell, capfd: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    Magic(shell).run(words)
    error = capfd.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert shell.shown == []


def test_help_lists_the_options(shell: FakeShell, capfd: pytest.CaptureFixture[str]) -> None:
    Magic(shell).run("--help")
    shown = capfd.readouterr().out
    for option in ("--height", "--page-url", "--view-only", "--detach", "--emulate", "--url"):
        assert option in shown

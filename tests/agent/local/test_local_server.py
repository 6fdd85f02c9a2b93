from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from vramscope.local.local_server import LocalServerFinder, server_command
from vramscope.local.runtime_file import LocalServer
from vramscope.notices import Notices

SERVER = """
import http.server, json, os, sys
folder, options = sys.argv[1], sys.argv[2:]
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Healthy)
with open(folder + "/starts", "a") as file:
    file.write(json.dumps([options, os.getcwd(), dict(os.environ), os.getsid(0)]) + "\\n")
entry = {"url": f"http://127.0.0.1:{server.server_port}", "token": "made", "pid": os.getpid()}
descriptor = os.open(folder + "/new", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(descriptor, json.dumps(entry).encode())
os.rename(folder + "/new", folder + "/server.json")
print("log line", flush=True)
server.serve_forever()
"""


class Host:
    """A folder in which servers can be started, and what is needed to end them."""

    def __init__(self, folder: Path, script: Path) -> None:
        self.folder = folder
        self.script = script
        self.cancelled = threading.Event()
        self.found: list[LocalServer] = []

    def finder(self, **options: Any) -> LocalServerFinder:
        given: dict[str, Any] = {"may_start": True, "command": self.command, **options}
        return LocalServerFinder(Notices(), cancelled=self.cancelled, folder=self.folder, **given)

    def command(self, *options: str) -> list[str]:
        return [sys.executable, str(self.script), str(self.folder), *options]

    def find(self, **options: Any) -> LocalServer | None:
        server = self.finder(**options).find()
        if server is not None:
            self.found.append(server)
        return server

    @property
    def starts(self) -> list[Any]:
        import json

        path = self.folder / "starts"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    # The servers of these tests need no extra, and are tested where it is not installed, too.
    monkeypatch.setattr("vramscope.local.local_server.missing_server_extra", lambda: None)
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    host = Host(tmp_path / "runtime", script)
    yield host
    for pid in {server.pid for server in host.found}:
        os.kill(pid, signal.SIGKILL)


def test_one_is_started_detached_and_found_again(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VRAMSCOPE_RUN", "an option for the agent")
    monkeypatch.setenv("PYTHONPATH", "relative")
    server = host.find()
    assert server is not None
    assert server.token == "made"
    ((options, folder, environ, session_id),) = host.starts
    assert options[:3] == ["--idle-exit-s", "600", "--port"]
    assert folder == str(host.folder)
    assert "VRAMSCOPE_RUN" not in environ
    assert environ["PYTHONPATH"] == os.path.abspath("relative")
    assert session_id == server.pid != os.getsid(0)
    assert (host.folder / "server.log").read_text() == "log line\n"
    assert (host.folder / "server.log").stat().st_mode & 0o077 == 0
    assert host.find() == server
    assert len(host.starts) == 1
    with pytest.raises(ChildProcessError):
        os.waitpid(server.pid, os.WNOHANG)  # the job finds no child that it did not start


def test_ranks_that_come_together_start_one(host: Host) -> None:
    with ThreadPoolExecutor(4) as pool:
        servers = list(pool.map(lambda _: host.find(), range(4)))
    assert len({server.pid for server in servers if server is not None}) == 1
    assert len(host.starts) == 1


def test_none_is_started_where_that_is_not_wanted(host: Host) -> None:
    assert host.find(may_start=False) is None
    assert not host.folder.exists()


def test_a_start_is_tried_once(host: Host, capfd: pytest.CaptureFixture[str]) -> None:
    host.script.write_text("import sys; sys.exit('cannot')")
    finder = host.finder(start_timeout_s=0.3)
    assert finder.find() is None
    assert finder.find() is None
    assert capfd.readouterr().err == (
        "vramscope: no local server could be started (it did not answer within 0.3 s; "
        f"see {host.folder / 'server.log'}); the job goes on without a dashboard\n"
    )
    assert (host.folder / "server.log").read_text() == "cannot\n"


def test_waiting_ends_when_nobody_needs_it_any_more(host: Host) -> None:
    host.script.write_text("import time; time.sleep(1)")
    host.cancelled.set()
    assert host.find() is None


def test_without_the_server_extra_it_says_what_to_install(
    host: Host, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vramscope.local.local_server.missing_server_extra", lambda: "fastapi")
    assert host.find() is None
    assert capfd.readouterr().err == (
        "vramscope: no local server could be started (fastapi is not installed here; "
        "pip install 'vramscope[server]' or give --url); the job goes on without a dashboard\n"
    )


def test_a_frozen_program_does_not_start_itself_over_and_over(
    host: Host, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """There ``sys.executable`` is the job: it would attach and start the next one."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert host.find() is None
    assert host.starts == []
    assert "this program is frozen" in capfd.readouterr().err


def test_a_folder_of_somebody_else_is_not_used(
    host: Host, capfd: pytest.CaptureFixture[str]
) -> None:
    host.folder.mkdir(mode=0o777)
    host.folder.chmod(0o777)
    assert host.find() is None
    assert "expected a folder of this user with mode 0700" in capfd.readouterr().err
    assert host.starts == []


def test_the_command_is_the_server_of_this_python() -> None:
    assert server_command("--port", "1") == [
        sys.executable,
        "-m",
        "vramscope_server",
        "--port",
        "1",
    ]

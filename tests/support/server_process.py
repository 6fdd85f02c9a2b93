"""A real server in a process of its own, for tests that kill it, restart it, or talk to it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0


class Answer(NamedTuple):
    """Status and decoded body of a response."""

    status: int
    body: Any
    headers: Mapping[str, str]


class ServerProcess:
    """``python -m vramscope_server`` with its database and runtime file below ``folder``.

    Args:
        folder: empty folder of the test; holds the database, the log and the runtime file.
        token: fixed token; None lets the server make one.
        port: 0 takes any; a restart keeps the one that was taken.
        options: further command line options.
        environ: further environment variables.
    """

    def __init__(
        self,
        folder: Path,
        *,
        token: str | None = "test-token",
        port: int = 0,
        options: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.token = token or ""
        self.port = port
        self.page_url = ""
        self.database = f"sqlite:///{folder / 'vramscope.db'}"
        self.runtime_folder = folder / "runtime"
        self._options = list(options)
        self._environ = dict(environ or {})
        self._process: subprocess.Popen[str] | None = None
        self._output: list[str] = []
        self._readers: list[threading.Thread] = []
        self._listening = threading.Event()

    @property
    def url(self) -> str:
        """Address of the server, without a token."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def __enter__(self) -> ServerProcess:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        if error is not None:
            print(f"--- log of the server ---\n{self.log_text()}", file=sys.stderr)

    def start(self, timeout_s: float = START_TIMEOUT_S) -> ServerProcess:
        """Start the process and wait for the line that says where it listens."""
        assert self._process is None, "the server is running already"
        self._listening.clear()
        self.runtime_folder.mkdir(mode=0o700, exist_ok=True)
        process = subprocess.Popen(
            self.command(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=self.environment(),
            start_new_session=True,
        )
        self._process = process
        self._readers = [
            threading.Thread(target=self._read, args=(stream, is_stdout), daemon=True)
            for stream, is_stdout in ((process.stdout, True), (process.stderr, False))
        ]
        for reader in self._readers:
            reader.start()
        if not self._listening.wait(timeout_s) or process.poll() is not None:
            self.kill()
            raise AssertionError(f"the server did not start:\n{self.log_text()}")
        return self

    def command(self) -> list[str]:
        """Command line of the server."""
        line = [sys.executable, "-m", "vramscope_server", "--port", str(self.port)]
        line += ["--database", self.database]
        if self.token:
            line += [f"--token={self.token}"]
        return line + self._options

    def environment(self) -> dict[str, str]:
        """Environment of the server: nothing of the user's, coverage and paths kept."""
        environ = {name: value for name, value in os.environ.items() if "VRAMSCOPE" not in name}
        environ["XDG_RUNTIME_DIR"] = str(self.runtime_folder)
        environ["XDG_DATA_HOME"] = str(self.folder / "data")
        return environ | self._environ

    def kill(self) -> None:
        """End the process as ``kill -9`` does, and wait until it is gone. Harmless if it is."""
        self._end(signal.SIGKILL)

    def terminate(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Ask the process to end in order; its exit code."""
        return self._end(signal.SIGTERM, timeout_s)

    def restart(self) -> ServerProcess:
        """Start again on the same port, with the same database and token."""
        self.kill()
        return self.start()

    def wait_exit(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Wait until the process ends by itself; its exit code."""
        return self._end(None, timeout_s)

    def log_text(self) -> str:
        """Everything that was written to stdout and stderr, over all lives of the server."""
        return "".join(self._output)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One REST request with the server's token (or ``token``; "" sends none)."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        secret = self.token if token is None else token
        if secret:
            sent["Authorization"] = f"Bearer {secret}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=10) as response:
                return Answer(response.status, _decoded(response.read()), dict(response.headers))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _decoded(error.read()), dict(error.headers))

    def get(self, path: str) -> Any:
        """Body of a GET that has to succeed."""
        answer = self.request("GET", path)
        assert answer.status == 200, f"GET {path}: {answer}"
        return answer.body

    def wait_until(self, probe: Callable[[], T], timeout_s: float = 15.0) -> T:
        """Ask again until the answer is true; the last answer in the failure."""
        return wait_until(probe, timeout_s, self.log_text)

    def _end(self, number: signal.Signals | None, timeout_s: float = STOP_TIMEOUT_S) -> int:
        process = self._process
        if process is None:
            return 0
        if number is not None and process.poll() is None:
            process.send_signal(number)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
            self._finish_reading(process)
            raise AssertionError(
                f"the server did not end within {timeout_s} s:\n{self.log_text()}"
            ) from None
        self._finish_reading(process)
        return code

    def _finish_reading(self, process: subprocess.Popen[str]) -> None:
        self._process = None
        for reader in self._readers:
            reader.join(STOP_TIMEOUT_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def _read(self, stream: Any, is_stdout: bool) -> None:
        for line in stream:
            self._output.append(line)
            match = re.match(r"vramscope: (http://[^:/]+:(\d+)/\S*)", line)
            if is_stdout and match is not None:
                self.page_url, self.port = match[1], int(match[2])
                if not self.token:
                    self.token = match[1].partition("token=")[2]
                self._listening.set()
        if is_stdout:
            self._listening.set()  # it has ended: whoever waits for it looks at the exit code


def wait_until(
    probe: Callable[[], T], timeout_s: float = 15.0, explain: Callable[[], str] = lambda: ""
) -> T:
    """Call ``probe`` until its result is true, and return that result."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        result = probe()
        if result:
            return result
        if time.monotonic() >= deadline_s:
            raise AssertionError(f"not within {timeout_s} s; last: {result!r}\n{explain()}")
        time.sleep(0.02)


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode("utf-8", "replace")

"""Finds the local server of this user, or starts one beside the job."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

from vramscope.local.runtime_file import LocalServer, is_healthy, read_local_server, runtime_folder
from vramscope.notices import Notices
from vramscope.private_folder import make_private_folder
from vramscope.transport.address import DEFAULT_PORT

INSTALL_HINT: Final = "pip install 'vramscope[server]'"
START_TIMEOUT_S: Final = 15.0
_POLL_S: Final = 0.1
_EXTRA_MODULES: Final = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "numpy", "plotly")

# Runs in a process of its own that ends at once, so that the server is nobody's child: a job that
# waits for "any child" must not find one that it did not start.
_DETACH: Final = """
import os, subprocess, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                 start_new_session=True)
os._exit(0)
"""


def missing_server_extra() -> str | None:
    """Name of a module of the server extra that is not installed here."""
    for name in _EXTRA_MODULES:
        if importlib.util.find_spec(name) is None:
            return name
    return None


def server_command(*options: str) -> list[str]:
    """Command line of a server in this Python environment."""
    return [sys.executable, "-m", "vramscope_server", *options]


class LocalServerFinder:
    """Finds or starts the local server. One thread only: it may wait for seconds.

    Args:
        notices: where it is said that none can be had.
        may_start: whether to start one when none is running.
        cancelled: set when nobody needs the answer any more.
        command: makes the command line of the server.
        folder: where the runtime file is.
    """

    def __init__(
        self,
        notices: Notices,
        *,
        may_start: bool,
        cancelled: threading.Event,
        command: Callable[..., list[str]] = server_command,
        folder: Path | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self._notices = notices
        self._may_start = may_start
        self._cancelled = cancelled
        self._command = command
        self._folder = folder or runtime_folder()
        self._start_timeout_s = start_timeout_s

    def find(self) -> LocalServer | None:
        """The running server, or a started one, or ``None``; a start is tried once."""
        server = self._running()
        if server is not None or not self._may_start:
            return server
        self._may_start = False
        if getattr(sys, "frozen", False):
            # sys.executable is the job: it would attach and start the next one, for ever.
            self._fail("this program is frozen: start vramscope serve by hand, or give --url")
            return None
        missing = missing_server_extra()
        if missing is not None or not sys.executable:
            self._fail(f"{missing or 'python'} is not installed here; {INSTALL_HINT} or give --url")
            return None
        try:
            return self._start()
        except (OSError, subprocess.SubprocessError) as error:
            self._fail(str(error))
            return None

    def _running(self) -> LocalServer | None:
        server = read_local_server(self._folder)
        return server if server is not None and is_healthy(server) else None

    def _start(self) -> LocalServer | None:
        make_private_folder(str(self._folder))
        deadline_s = time.monotonic() + self._start_timeout_s
        with _only_one(self._folder / "start.lock") as is_first:
            if is_first:
                self._spawn()
            # Other ranks of this machine are here at the same moment: one starts, all wait.
            while time.monotonic() < deadline_s and not self._cancelled.wait(_POLL_S):
                server = self._running()
                if server is not None:
                    return server
        if not self._cancelled.is_set():
            self._fail(
                f"it did not answer within {self._start_timeout_s:g} s; "
                f"see {self._folder / 'server.log'}"
            )
        return None

    def _spawn(self) -> None:
        port = DEFAULT_PORT if _is_free(DEFAULT_PORT) else 0
        command = self._command("--idle-exit-s", "600", "--port", str(port))
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _DETACH, str(self._folder / "server.log"), *command],
            cwd=self._folder,  # with -m the working folder can be imported from: not the job's
            env=_server_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=self._start_timeout_s,
            check=False,
            # A notebook interrupts the whole process group of its kernel.
            start_new_session=True,
        )

    def _fail(self, reason: str) -> None:
        self._notices.say(
            "local-server",
            f"no local server could be started ({reason}); the job goes on without a dashboard",
        )


def _server_environment() -> dict[str, str]:
    """The job's environment without its vramscope options, which are meant for the agent."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VRAMSCOPE_")}
    search_path = environment.get("PYTHONPATH")
    if search_path:
        folders = [os.path.abspath(folder) for folder in search_path.split(os.pathsep) if folder]
        environment["PYTHONPATH"] = os.pathsep.join(folders)
    return environment


def _is_free(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _only_one(path: Path) -> Generator[bool]:
    """Whether this is the only process inside, by a lock on a file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_first = True
        except BlockingIOError:
            is_first = False
        yield is_first
    finally:
        os.close(descriptor)

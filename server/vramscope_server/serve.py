"""Runs one server in this process: binds, says where it is, and ends it in order."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from types import FrameType
from typing import Final
from urllib.parse import quote

import uvicorn

from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_server.app import Application, create_app
from vramscope_server.reaper import Reaper
from vramscope_server.runtime_file import RuntimeFile, ServerEntry, runtime_file_path
from vramscope_server.settings import Settings
from vramscope_server.version import server_version

_BACKLOG: Final = 2048
_IDLE_CHECK_S: Final = 1.0


def serve(settings: Settings) -> None:
    """Serve until a signal or, if asked for, until nobody needs the server any more.

    Raises:
        VramscopeError: the port is taken, or the database cannot be opened.
    """
    logging.basicConfig(level=logging.WARNING, format="vramscope: %(levelname)s: %(message)s")
    listener = bind(settings.host, settings.port)
    try:
        application = create_app(settings)
    except BaseException:
        listener.close()
        raise
    server = Server(application, listener)
    # Uvicorn raises the signal again when it has shut down. We have ended in order by then, so
    # that the exit code is 0; before that, a signal ends the process at once.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.on_signal)
    server.run(sockets=[listener])


def bind(host: str, port: int) -> socket.socket:
    """Take the port before anything else is done.

    Raises:
        VramscopeError: ``bad_request``: it is taken, or the host is not one of this machine.
    """
    try:
        family, _kind, _protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise VramscopeError(BAD_REQUEST, f"cannot listen on {host}: {error.strerror}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise VramscopeError(
            BAD_REQUEST, f"cannot listen on {host} port {port}: {error.strerror}"
        ) from None
    return listener


class Server(uvicorn.Server):
    """Uvicorn, with our stages of starting and ending around its own."""

    def __init__(self, application: Application, listener: socket.socket) -> None:
        settings = application.context.settings
        super().__init__(
            uvicorn.Config(
                application,
                host=settings.host,
                loop="auto",
                http="httptools",
                ws="websockets-sansio",
                ws_max_size=settings.limits.max_message_bytes,
                # Deflate costs half as much CPU again as everything else that ingest does.
                ws_per_message_deflate=False,
                lifespan="on",
                # Their records go where ours go.
                log_config=None,
                # The first address carries a token: no request line may reach a log.
                access_log=False,
                # Addresses go into the audit log: no header may change them.
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=settings.limits.shutdown_s,
            )
        )
        self._application = application
        self._settings = settings
        self._port: int = listener.getsockname()[1]
        self._runtime_file = RuntimeFile(runtime_file_path(os.environ, os.getuid()))
        self._reaper = Reaper(self.server_state.connections, settings.limits.stalled_close_s)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def address(self) -> str:
        """URL of the server, without a token."""
        host = self._settings.host
        if host in {"0.0.0.0", "::", ""}:
            host = socket.gethostname()
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}"

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        """End the process, unless the server has begun to run and ends by itself."""
        if not self.started:
            raise SystemExit(128 + number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and only then say that the server is there."""
        self._application.context.port = self._port
        await super().startup(sockets)
        if self.should_exit or not self.started:
            return
        token = self._application.context.authenticator.fixed_token
        if self._settings.is_found_by_jobs:
            self._write_runtime_file(token)
        if self._settings.idle_exit_s > 0:
            self._tasks.append(asyncio.create_task(self._watch_idleness()))
        self._tasks.append(asyncio.create_task(self._reaper.run()))
        # On an address that others can reach, the output may be collected where others read it.
        query = f"/?token={quote(token, safe='')}" if self._settings.is_loopback else "/"
        print(f"vramscope: {self.address}{query}", flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, tell every peer, and let uvicorn close what is left."""
        self._runtime_file.remove()
        for server in self.servers:
            server.close()
        await self._application.stop()
        await super().shutdown(sockets)
        for task in self._tasks:
            task.cancel()

    def _write_runtime_file(self, token: str) -> None:
        entry = ServerEntry(self.address, token, os.getpid(), time.time_ns(), server_version())
        try:
            self._runtime_file.write(entry)
        except (OSError, VramscopeError) as error:
            # The server works without it: agents have to be told its address.
            print(f"vramscope: agents will not find this server: {error}", file=sys.stderr)

    async def _watch_idleness(self) -> None:
        limit_s = self._settings.idle_exit_s
        while self._application.activity.idle_s() < limit_s:
            await asyncio.sleep(min(_IDLE_CHECK_S, limit_s / 4))
        self.should_exit = True

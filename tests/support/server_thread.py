"""A server on a real port in a thread of the test's process: for sockets with limits of choice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.support.scripted_agent import ScriptedAgent, socket_agent
from tests.support.server_process import wait_until
from vramscope_server.app import create_app
from vramscope_server.context import Context
from vramscope_server.serve import Server, bind
from vramscope_server.settings import Limits, Settings

TOKEN = "test-token"
TIMEOUT_S = 20.0


class ServerThread:
    """A listening server."""

    def __init__(self, server: Server, context: Context, thread: threading.Thread) -> None:
        self.server = server
        self.context = context
        self._thread = thread
        self._pages = ExitStack()

    @property
    def url(self) -> str:
        """Address without a token."""
        return self.server.address

    def agent(self, **options: Any) -> ScriptedAgent:
        """An agent; not yet connected."""
        return socket_agent(self.url, TOKEN, **options)

    def live(self, **options: Any) -> ClientConnection:
        """A browser connection whose hello was not read yet."""
        headers = {"authorization": f"Bearer {TOKEN}"}
        address = self.url.replace("http", "ws", 1) + "/ws/live"
        settings: dict[str, Any] = {
            "compression": None,
            "proxy": None,
            "close_timeout": 1,
            **options,
        }
        page: ClientConnection = self._pages.enter_context(
            connect(address, additional_headers=headers, **settings)
        )
        return page

    def close_pages(self) -> None:
        """Close every browser connection."""
        self._pages.close()

    def stop(self) -> None:
        """End in order and wait for it."""
        self.server.should_exit = True
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive(), "the server did not end"


@contextmanager
def server_thread(folder: Path, limits: Limits | None = None) -> Iterator[ServerThread]:
    """A server with its database in ``folder``."""
    settings = Settings(
        port=0,
        database_url=f"sqlite:///{folder / 'vramscope.db'}",
        token=TOKEN,
        runtime_file=False,
        limits=limits or Limits(),
    )
    listener = bind(settings.host, settings.port)
    application = create_app(settings)
    server = Server(application, listener)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
    thread.start()
    running = ServerThread(server, application.context, thread)
    try:
        wait_until(lambda: server.started or not thread.is_alive(), TIMEOUT_S)
        assert server.started, "the server did not start"
        yield running
    finally:
        running.close_pages()
        running.stop()

"""Which server this process talks to: the one that was given, or the local one."""

from __future__ import annotations

import threading

from vramscope.config import Config
from vramscope.local.local_server import LocalServerFinder
from vramscope.local.runtime_file import read_local_server
from vramscope.notices import Notices
from vramscope.transport.transport import Target


class TargetFinder:
    """Answers on each attempt to connect, since a local server may have moved.

    Args:
        config: the server and token that were given, if any.
        notices: where it is said that no local server can be had.
        cancelled: set when nobody needs the answer any more.
    """

    def __init__(self, config: Config, notices: Notices, cancelled: threading.Event) -> None:
        self._config = config
        self._local = LocalServerFinder(notices, may_start=config.local_server, cancelled=cancelled)
        self._local_token: str | None = None

    def find(self) -> Target | None:
        """The server to talk to; may wait for one to start. Transport thread only."""
        address, token = self._config.address, self._config.token
        if address is None:
            server = self._local.find()
            if server is None:
                return None
            self._local_token = server.token
            return Target(server.address, server.token)
        if token is None:
            # The local server named by its address: its token is in reach of this user anyway.
            local = read_local_server()
            if local is not None and local.address == address:
                token = local.token
        return Target(address, token or "")

    def page_url(self, target: Target, path: str = "/") -> str:
        """What a person opens in a browser; with the token only for a local server's own."""
        url = f"{target.address.http_url}{path}"
        if self._local_token is not None and target.token == self._local_token:
            return f"{url}?token={target.token}"
        return url.removesuffix("/")

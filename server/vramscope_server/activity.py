"""When the server was last needed, for a server that ends itself when nobody needs it."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send


class Activity:
    """Notes requests, and tells for how long there was neither a request nor a connection."""

    def __init__(
        self, connection_count: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection_count = connection_count
        self._clock = clock
        self._last_s = clock()

    def note(self) -> None:
        """The server is needed now."""
        self._last_s = self._clock()

    def idle_s(self) -> float:
        """Seconds without a request, an agent and a browser."""
        if self._connection_count() > 0:
            self.note()
        return self._clock() - self._last_s


class ActivityMonitor:
    """ASGI middleware that notes every request. Health checks do not keep a server alive."""

    def __init__(self, app: ASGIApp, activity: Activity) -> None:
        self._app = app
        self._activity = activity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note the request and pass it on."""
        if scope["type"] != "lifespan" and scope["path"] not in {"/healthz", "/readyz"}:
            self._activity.note()
        await self._app(scope, receive, send)

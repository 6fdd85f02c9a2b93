"""A server inside the test's own process, without a port: for REST and for live connections."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from starlette.testclient import TestClient, WebSocketTestSession

from tests.support.scripted_agent import ScriptedAgent
from tests.support.server_process import wait_until
from vramscope_server.app import Application, create_app
from vramscope_server.context import Context
from vramscope_server.settings import Limits, Settings

T = TypeVar("T")

HOST = "127.0.0.1:8470"
TOKEN = "test-token"
OWNER = {"authorization": f"Bearer {TOKEN}"}


class _TestWire:
    """A websocket of the test client as the wire of a scripted agent."""

    def __init__(self, session: WebSocketTestSession) -> None:
        self._session = session
        self._session.__enter__()

    def send(self, frame: bytes) -> None:
        self._session.send_bytes(frame)

    def receive(self, timeout_s: float) -> bytes:
        return self._session.receive_bytes()

    def close(self) -> None:
        self._session.close()
        self._session.__exit__(None, None, None)


class ServerApp:
    """One running application and a client that is let in."""

    def __init__(self, application: Application, client: TestClient) -> None:
        self.application = application
        self.client = client

    @property
    def context(self) -> Context:
        """The parts of the server."""
        return self.application.context

    def agent(self, **options: Any) -> ScriptedAgent:
        """An agent; not yet connected."""
        return ScriptedAgent(lambda: _TestWire(self.websocket("/ws/agent")), TOKEN, **options)

    def websocket(self, path: str, **headers: str) -> WebSocketTestSession:
        """A websocket, not yet entered."""
        return self.client.websocket_connect(f"ws://{HOST}{path}", headers=headers)

    def live(self, token: str = TOKEN) -> LivePage:
        """A browser connection, not yet entered."""
        return LivePage(self.websocket("/ws/live", authorization=f"Bearer {token}"))

    def get(self, path: str, **params: Any) -> Any:
        """Body of a GET that has to succeed."""
        response = self.client.get(path, params=params, headers=OWNER)
        assert response.status_code == 200, f"GET {path}: {response.status_code} {response.text}"
        return response.json()

    def get_error(self, path: str, status: int, **params: Any) -> dict[str, Any]:
        """Error of a GET that has to fail with ``status``."""
        response = self.client.get(path, params=params, headers=OWNER)
        assert response.status_code == status, f"GET {path}: {response.text}"
        error: dict[str, Any] = response.json()["error"]
        assert set(error) == {"code", "message", "detail"}
        return error

    def post(self, path: str, body: Any, token: str = TOKEN, **headers: str) -> Any:
        """Response to a POST of JSON."""
        sent = {"authorization": f"Bearer {token}", **headers}
        return self.client.post(path, json=body, headers=sent)

    def make_token(self, *scopes: str, name: str = "made", expires_ns: int | None = None) -> str:
        """Secret of a new token."""
        from vramscope_server.store import tokens

        store = self.context.store
        secret, _record = store.write_now(
            lambda c: tokens.create_token(c, name, scopes, 1, expires_ns=expires_ns)
        )
        return secret

    def wait_until(self, probe: Callable[[], T], timeout_s: float = 10.0) -> T:
        """Ask again until the answer is true."""
        return wait_until(probe, timeout_s)


class LivePage:
    """One browser connection that numbers its requests."""

    def __init__(self, session: WebSocketTestSession) -> None:
        self.session = session
        self.last_id = 0
        self.hello: dict[str, Any] = {}

    def __enter__(self) -> LivePage:
        self.session.__enter__()
        self.hello = self.receive()
        return self

    def __exit__(self, *arguments: Any) -> None:
        self.session.close()
        self.session.__exit__(*arguments)

    def ask(self, kind: str, **request: Any) -> int:
        """Send a request; its id."""
        self.last_id += 1
        self.session.send_text(json.dumps({"type": kind, "id": self.last_id, **request}))
        return self.last_id

    def receive(self) -> dict[str, Any]:
        """The next frame."""
        frame: dict[str, Any] = json.loads(self.session.receive_text())
        return frame

    def wait_event(self, kind: str, accept: Callable[[Any], bool] = lambda _: True) -> Any:
        """The next event of a kind that is accepted; others are passed over."""
        while True:
            frame = self.receive()
            event = frame.get("event", {})
            if event.get("kind") == kind and accept(event):
                return event


@contextmanager
def server_app(folder: Path, limits: Limits | None = None, **options: Any) -> Iterator[ServerApp]:
    """A started application with its database in ``folder``."""
    settings = Settings(
        database_url=f"sqlite:///{folder / 'vramscope.db'}",
        limits=limits or Limits(),
        **({"token": TOKEN} | options),
    )
    application = create_app(settings)
    with TestClient(application, base_url=f"http://{HOST}", follow_redirects=False) as client:
        yield ServerApp(application, client)

"""A REST server whose answers a test writes down, and which keeps what it was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


class FakeApi:
    """Answers ``METHOD path`` with the next of the answers given for it; a context manager."""

    def __init__(self, answers: dict[str, list[tuple[int, Any]]]) -> None:
        self.answers = answers
        self.cut_off_bytes = 0
        """How much of a file is announced and never comes."""
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(None)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                self._answer(json.loads(self.rfile.read(length)))

            def _answer(self, body: Any) -> None:
                line = f"{self.command} {self.path}"
                api.requests.append((line, body, dict(self.headers)))
                given = answers.get(line, [(404, "no such page")])
                status, answer = given.pop(0) if len(given) > 1 else given[0]
                text = "" if isinstance(answer, bytes) else json.dumps(answer)
                text = answer if isinstance(answer, str) else text
                content = answer if isinstance(answer, bytes) else text.encode()
                self.send_response(status)
                if isinstance(answer, bytes):
                    self.send_header("Content-Length", str(len(content) + api.cut_off_bytes))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass  # the test reads api.requests

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(0.01), daemon=True
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FakeApi:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

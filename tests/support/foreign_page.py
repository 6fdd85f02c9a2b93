"""A page of another origin, standing for the one that shows a notebook."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


class ForeignPage:
    """Serves one document, which may be changed; a context manager.

    Args:
        headers: further headers of the document.
    """

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self.body = ""
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if self.path == "/" else 404)
                self.send_header("content-type", "text/html; charset=utf-8")
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(f"<!doctype html><title>Lab</title>{page.body}".encode())

            def log_message(self, format: str, *args: object) -> None:
                pass  # the test's output is about the test

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(0.01), daemon=True
        )
        port = self._server.server_port
        self.other_site = f"http://localhost:{port}/"
        """Of another site than 127.0.0.1: a browser keeps cookies from frames in it."""
        self.same_site = f"http://127.0.0.1:{port}/"
        """Of another origin and of the same site: a browser lets cookies through."""

    def __enter__(self) -> ForeignPage:
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

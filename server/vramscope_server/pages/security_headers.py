"""Headers that every response carries, and the policy of what the page may load."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_EMPTY_STYLE: Final = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
"""Plotly makes an empty style element and fills it through the CSSOM: only that one is allowed."""

_SOURCES: Final = "; ".join(
    (
        "default-src 'self'",
        f"style-src 'self' {_EMPTY_STYLE}",
        # Plotly sets style attributes on the SVG that it draws; nothing else works without them.
        "style-src-attr 'unsafe-inline'",
        # Heat maps are data: images, "download as PNG" goes through a blob: image.
        "img-src 'self' data: blob:",
        "base-uri 'none'",
        "object-src 'none'",
        "form-action 'self'",
    )
)

CONTENT_SECURITY_POLICY: Final = f"{_SOURCES}; frame-ancestors 'none'"

FRAME_HEADERS: Final = {
    # No frame-ancestors: where a notebook is shown is not known here, and the wildcard does not
    # match what some of them are, such as a window of an editor or a sandbox. What may be framed
    # by anybody acts only with the token of its own address, never with a cookie.
    "content-security-policy": _SOURCES,
    # A page that isolates itself holds only frames that say these two.
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "cross-origin",
}
"""Headers of the one document that a page of another origin may hold in a frame."""

_HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # The first URL carries a token: it must not travel on to another site in a Referer. Not
    # "no-referrer": browsers then send "Origin: null" with a form, and the Origin is checked.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


class SecurityHeaders:
    """ASGI middleware that adds the headers to every HTTP response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and complete its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                # Answers of the API hold data of a job: they stay out of every cache.
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)

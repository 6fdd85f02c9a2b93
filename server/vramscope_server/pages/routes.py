"""The page: one document for every address of the app, its static files, and Plotly."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from vramscope_frontend import INDEX_HTML, STATIC_DIR
from vramscope_protocol.errors import VramscopeError
from vramscope_server.auth.credentials import (
    client_address,
    identify,
    session_cookie,
    set_session_cookie,
)
from vramscope_server.auth.principal import VIEW
from vramscope_server.context import Context, context_of
from vramscope_server.pages.login import bounce_page, local_path, login_page
from vramscope_server.pages.security_headers import FRAME_HEADERS

router = APIRouter(include_in_schema=False)

_NO_CACHE: Final = "no-cache"
"""Kept by the browser, but asked for again each time: an update of the server shows at once."""


@router.get("/")
@router.get("/runs")
@router.get("/runs/{rest:path}")
@router.get("/audit")
async def get_page(request: Request) -> Response:
    """The page, or what a browser needs first: a session."""
    context = context_of(request)
    if "token" in request.query_params:
        return await _sign_in(request, context)
    try:
        caller = await identify(request, context.authenticator)
        caller.require(VIEW)
    except VramscopeError as error:
        if request.headers.get("sec-fetch-site") == "cross-site":
            return bounce_page()
        was_signed_in = session_cookie(request) in request.cookies
        return login_page(error if was_signed_in else None, _address(request))
    return HTMLResponse(
        INDEX_HTML.read_text(encoding="utf-8"), headers={"cache-control": _NO_CACHE}
    )


@router.get("/frame/{rest:path}")
async def get_frame() -> Response:
    """The page for a frame inside another page. It is the same for everybody: who looks at it is
    told by the token in its fragment, which no request for a document carries."""
    return HTMLResponse(
        INDEX_HTML.read_text(encoding="utf-8"),
        headers={"cache-control": _NO_CACHE, **FRAME_HEADERS},
    )


async def _sign_in(request: Request, context: Context) -> Response:
    """Turn the token of the address into a cookie, and get it out of the address."""
    address = _address(request)
    try:
        session = await context.authenticator.open_session(
            request.query_params["token"], client_address(request)
        )
    except VramscopeError as error:
        return login_page(error, address)
    response = RedirectResponse(local_path(address), 303, headers={"cache-control": "no-store"})
    set_session_cookie(response, request, session, context.settings.limits.session_s)
    return response


def _address(request: Request) -> str:
    """Path and query of a request, without the token."""
    query = [pair for pair in parse_qsl(request.url.query) if pair[0] != "token"]
    return f"{request.url.path}?{urlencode(query)}" if query else request.url.path


class PageFiles(StaticFiles):
    """Files of the page below ``/static``: nothing that Python runs, nothing hidden."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC_DIR)

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Find a file that the page may load."""
        if path.endswith((".py", ".pyc", ".html")) or "/." in f"/{path}":
            return "", None
        return super().lookup_path(path)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One file; the browser keeps it and asks whether it is still good."""
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = _NO_CACHE
        return response

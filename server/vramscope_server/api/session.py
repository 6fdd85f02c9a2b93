"""Signing in and out, and what the caller may do."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from vramscope_protocol.errors import AUTH_FAILED, BAD_REQUEST, VramscopeError
from vramscope_server.api.access import AnyCaller, Server, json_response
from vramscope_server.api.machine import may_list_jobs
from vramscope_server.auth.credentials import (
    clear_session_cookie,
    client_address,
    session_cookie,
    set_session_cookie,
)
from vramscope_server.pages.login import local_path, login_page
from vramscope_server.version import server_version

router = APIRouter(tags=["session"])
login_router = APIRouter(include_in_schema=False)

_FORM: Final = "application/x-www-form-urlencoded"


class _Login(msgspec.Struct):
    token: str


@router.get("/session")
async def get_session(request: Request, server: Server, caller: AnyCaller) -> Response:
    """Scopes of the caller, and which server answers.

    ``attach_list``: the caller may ask for the processes of this machine. ``found_by_jobs``: jobs
    of this user need not be told the address.
    """
    return json_response(
        {
            "scopes": sorted(caller.scopes),
            "name": caller.name,
            "expires_ns": caller.expires_ns,
            "server": {
                "version": server_version(),
                "host": server.settings.host,
                "port": server.port,
                "attach_list": may_list_jobs(request, server, caller),
                "found_by_jobs": server.settings.is_found_by_jobs,
            },
        }
    )


@login_router.post("/login")
async def log_in(request: Request, server: Server) -> Response:
    """Exchange a token for the session cookie. Takes JSON of a script or the form of the page."""
    is_form = request.headers.get("content-type", "").partition(";")[0].strip() == _FORM
    body = await request.body()
    fields: dict[str, Any]
    if is_form:
        parsed = parse_qs(body.decode("utf-8", "replace"), max_num_fields=8)
        fields = {name: values[0].strip() for name, values in parsed.items()}
    else:
        fields = {"token": _json_token(body)}
    try:
        session = await _open_session(request, server, fields.get("token", ""))
    except VramscopeError as error:
        if not is_form:
            raise
        return login_page(error, fields.get("next", "/"))
    response: Response
    if is_form:
        response = RedirectResponse(local_path(fields.get("next", "/")), 303)
    else:
        principal = await server.authenticator.verify_session(session)
        response = json_response({"scopes": sorted(principal.scopes), "name": principal.name})
    set_session_cookie(response, request, session, server.settings.limits.session_s)
    return response


@login_router.post("/logout", status_code=204)
async def log_out(request: Request, server: Server) -> Response:
    """End the session of this browser."""
    session = request.cookies.get(session_cookie(request))
    if session:
        await server.authenticator.close_session(session)
    response = Response(status_code=204)
    clear_session_cookie(response, request)
    return response


async def _open_session(request: Request, server: Server, token: str) -> str:
    if not token:
        raise VramscopeError(AUTH_FAILED, "expected a token, got none")
    return await server.authenticator.open_session(token, client_address(request))


def _json_token(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Login).token
    except msgspec.DecodeError as error:
        raise VramscopeError(
            BAD_REQUEST, f'expected {{"token": "..."}}, got something else: {error}'
        ) from None

"""Who may call an endpoint, as FastAPI dependencies, and JSON answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Request, Response

from vramscope_protocol.errors import NOT_FOUND, VramscopeError
from vramscope_server.auth.credentials import identify
from vramscope_server.auth.principal import CONTROL, VIEW, Principal
from vramscope_server.context import Context, context_of

_OF_NO_RUN: Final = frozenset({"/api/v1/session", "/api/v1/series-names"})
"""What a caller that may see one run only may ask for besides: nothing of a job is in there."""


async def _principal(request: Request) -> Principal:
    context = context_of(request)
    caller = await identify(request, context.authenticator)
    if caller.run_id is not None and request.url.path not in _OF_NO_RUN:
        # Whatever names no run is refused, so that no endpoint has to think of such callers.
        caller.require_run(await _run_asked_for(context, request))
    return caller


async def _run_asked_for(context: Context, request: Request) -> str | None:
    """Id of the run that the address names, itself, by a snapshot or by a report."""
    run = request.path_params.get("run")
    if run is not None:
        return context.registry.find(run)
    oom = request.path_params.get("oom")
    if oom is not None:
        return await _run_of_oom(context, oom)
    snapshot = request.path_params.get("snapshot")
    named = _compared(request) if snapshot is None else [snapshot]
    try:
        runs = {await context.snapshots.run_of(one) for one in named}
    except VramscopeError:
        return None  # not to be told from one of another run
    # Two snapshots of two runs are of no run.
    return runs.pop() if len(runs) == 1 else None


async def _run_of_oom(context: Context, oom: str) -> str | None:
    try:
        return await context.ooms.run_of(oom)
    except VramscopeError:
        return None  # not to be told from one of another run


def _compared(request: Request) -> list[str]:
    """Snapshots that a query names."""
    if not request.url.path.endswith("/snapshots/growth"):
        return []
    return [one for one in map(request.query_params.get, ("a", "b")) if one is not None]


AnyCaller = Annotated[Principal, Depends(_principal)]
"""Whoever has a valid token, with any scope."""


def _viewer(caller: AnyCaller) -> Principal:
    caller.require(VIEW)
    return caller


def _controller(caller: AnyCaller) -> Principal:
    caller.require(CONTROL)
    return caller


Viewer = Annotated[Principal, Depends(_viewer)]
Controller = Annotated[Principal, Depends(_controller)]
Server = Annotated[Context, Depends(context_of)]


def json_response(body: Any, status: int = 200) -> Response:
    """Plain data as JSON. Long columns make validation and pydantic's encoder too dear here."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")


async def computed_response(context: Context, make_body: Callable[[], Any]) -> Response:
    """What ``make_body`` reads from the store, as JSON, without holding up the event loop: long
    columns take as long to encode as to read."""
    encoded = await context.store.compute(lambda: msgspec.json.encode(make_body()))
    return Response(encoded, media_type="application/json")


def run_id_of(context: Context, run: str) -> str:
    """Id of a run, given its id or its name.

    Raises:
        VramscopeError: ``not_found``.
    """
    run_id = context.registry.find(run)
    if run_id is None:
        raise VramscopeError(NOT_FOUND, f"no run with the id or the name {run!r}")
    return run_id


def field_names(fields: str | None) -> list[str] | None:
    """Names of a comma-separated list; None when nothing was named."""
    if fields is None:
        return None
    return [name for name in (part.strip() for part in fields.split(",")) if name]

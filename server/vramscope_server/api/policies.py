"""``/api/v1/policies``: what the server may do by itself, and what it did."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response

from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_server.api.access import Controller, Server, Viewer, json_response
from vramscope_server.api.commands import origin_of
from vramscope_server.auth.credentials import client_address
from vramscope_server.auth.principal import Principal
from vramscope_server.context import Context
from vramscope_server.policies.book import MOST_POLICIES, Author
from vramscope_server.policies.record import PolicyRecord
from vramscope_server.store import policies

router = APIRouter(tags=["policies"])


@router.get("/policies")
async def list_policies(server: Server, _caller: Viewer) -> Response:
    """Every policy, oldest first, and how things are with it now."""
    told = [_told(server, record) for record in server.policies.all()]
    return json_response({"policies": told, "most": MOST_POLICIES})


@router.post("/policies", status_code=201)
async def create_policy(request: Request, server: Server, caller: Controller) -> Response:
    """Make a policy; it is off unless ``is_on`` says otherwise, and in dry-run mode."""
    record = await server.policies.create(await _body(request), _author(request, caller))
    return json_response(_told(server, record), 201)


@router.get("/policies/{policy}")
async def get_policy(policy: str, server: Server, _caller: Viewer) -> Response:
    """One policy."""
    return json_response(_told(server, server.policies.get(policy)))


@router.put("/policies/{policy}")
async def change_policy(
    policy: str, request: Request, server: Server, caller: Controller
) -> Response:
    """Put another one in its place."""
    body, author = await _body(request), _author(request, caller)
    return json_response(_told(server, await server.policies.change(policy, body, author)))


@router.post("/policies/{policy}/on")
async def switch_on(policy: str, request: Request, server: Server, caller: Controller) -> Response:
    """Let it act, or say what it would do."""
    record = await server.policies.switch(policy, True, _author(request, caller))
    return json_response(_told(server, record))


@router.post("/policies/{policy}/off")
async def switch_off(policy: str, request: Request, server: Server, caller: Controller) -> Response:
    """Let it do nothing."""
    record = await server.policies.switch(policy, False, _author(request, caller))
    return json_response(_told(server, record))


@router.delete("/policies/{policy}")
async def delete_policy(
    policy: str, request: Request, server: Server, caller: Controller
) -> Response:
    """Forget it; the audit log keeps what it did."""
    await server.policies.delete(policy, _author(request, caller))
    return json_response({"deleted": policy})


@router.get("/policies/{policy}/firings")
async def list_firings(
    policy: str, server: Server, _caller: Viewer, limit: Annotated[int, Query(ge=1, le=1000)] = 200
) -> Response:
    """The newest times that it acted or would have, newest first."""
    record = server.policies.get(policy)
    found = await server.store.read(lambda c: policies.list_firings(c, record.id, limit))
    return json_response({"firings": [firing.as_dict() for firing in found]})


async def _body(request: Request) -> Any:
    # Read strictly: what is half of a character, or no number, could not be stored.
    try:
        return msgspec.json.decode(await request.body())
    except msgspec.DecodeError as error:
        raise VramscopeError(BAD_REQUEST, f"body: expected JSON ({error})") from None


def _author(request: Request, caller: Principal) -> Author:
    return Author(caller.name, origin_of(request), client_address(request))


def _told(server: Context, record: PolicyRecord) -> dict[str, Any]:
    return record.as_dict(server.policy_engine.watching(record))

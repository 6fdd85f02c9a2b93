"""``/api/v1/runs/{run}/commands``: ask a job to do something, and see what came of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vramscope_server.api.access import AnyCaller, Server, Viewer, json_response, run_id_of
from vramscope_server.auth.credentials import client_address
from vramscope_server.commands.request import CommandRequest, Issuer, Origin

router = APIRouter(tags=["commands"])


class CommandBody(BaseModel):
    """A command to run on some ranks of a run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(max_length=200)
    ranks: list[int] | Literal["all"] = "all"
    params: dict[str, Any] = Field(default_factory=dict)
    dry_run: bool = False
    deadline_s: float = 30.0
    id: str | None = Field(default=None, description="makes a repeated request run once")


@router.post("/runs/{run}/commands", status_code=202)
async def post_command(
    run: str, body: CommandBody, request: Request, server: Server, caller: AnyCaller
) -> Response:
    """Accept a command; each has its own right, view or control."""
    asked = CommandRequest(
        name=body.name,
        ranks=body.ranks,
        params=body.params,
        dry_run=body.dry_run,
        deadline_s=body.deadline_s,
        id=body.id,
    )
    issuer = Issuer(caller, origin_of(request), client_address(request))
    record = await server.coordinator.submit(run, asked, issuer)
    return json_response(record.as_dict(), 202)


@router.get("/runs/{run}/commands")
async def list_commands(
    run: str, server: Server, _caller: Viewer, limit: Annotated[int, Query(ge=1, le=1000)] = 200
) -> Response:
    """Commands of a run with their receipts, newest first."""
    run_id = run_id_of(server, run)
    return json_response({"commands": await server.coordinator.list(run_id, limit)})


@router.get("/runs/{run}/commands/{command_id}")
async def get_command(run: str, command_id: str, server: Server, _caller: Viewer) -> Response:
    """One command with the receipts that have come so far."""
    return json_response(await server.coordinator.find(run, command_id))


def origin_of(request: Request) -> Origin:
    """By which way a command was asked for; what only a page can have wins over what is claimed."""
    if "authorization" not in request.headers:
        return "browser"
    claimed = request.headers.get("x-vramscope-origin")
    if claimed == "cli":
        return "cli"
    return "browser" if claimed == "browser" else "api"

"""``/api/v1/runs/{run}/batch``: the largest batch that fits, and steps that would tell more."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vramscope_analysis.batch.room import HEAD_ROOM
from vramscope_server.api.access import Controller, Server, Viewer, json_response, run_id_of
from vramscope_server.api.commands import origin_of
from vramscope_server.auth.credentials import client_address
from vramscope_server.batch.batch_payload import batch_payload
from vramscope_server.commands.request import Issuer

router = APIRouter(tags=["batch"])


class ProbeBody(BaseModel):
    """The size that somebody consents to."""

    model_config = ConfigDict(extra="forbid", strict=True)

    batch_size: int = Field(ge=1, le=1 << 24, description="as `probe.batch_size` has it")


@router.get("/runs/{run}/batch")
async def get_batch(
    run: str,
    server: Server,
    _caller: Viewer,
    head_room: Annotated[
        float, Query(ge=0, le=0.5, description="part of the limit that is to stay free")
    ] = HEAD_ROOM,
) -> Response:
    """The largest batch size that fits, its range and what it rests on, or why none is told."""
    run_id = run_id_of(server, run)
    found = await server.batch_advisor.advise(run_id, head_room)
    probe = server.probes.of_run(run_id)
    return json_response(
        {
            "run": run_id,
            **batch_payload(found, head_room),
            "is_replaying": server.batch_advisor.is_replaying,
            "probing": None if probe is None else probe.payload(),
        }
    )


@router.post("/runs/{run}/batch/probe", status_code=202)
async def post_probe(
    run: str, body: ProbeBody, request: Request, server: Server, caller: Controller
) -> Response:
    """Train a few steps with another batch size, then go back: by ordinary commands."""
    run_id = run_id_of(server, run)
    issuer = Issuer(caller, origin_of(request), client_address(request))
    probe = await server.probes.begin(run_id, body.batch_size, issuer)
    return json_response(probe.payload(), 202)


@router.delete("/runs/{run}/batch/probe")
async def delete_probe(run: str, server: Server, _caller: Controller) -> Response:
    """Go back to the size of before at once."""
    return json_response(server.probes.end(run_id_of(server, run)).payload())

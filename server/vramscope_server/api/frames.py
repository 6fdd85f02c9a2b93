"""``/api/v1/runs/{run}/frames``: what a page of somebody else needs to hold this run's page."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from vramscope_server.api.access import Server, Viewer, json_response, run_id_of
from vramscope_server.auth.principal import CONTROL, VIEW

router = APIRouter(tags=["runs"])


class FrameBody(BaseModel):
    """What the page in the frame may do; it gets what the caller may do of it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scopes: list[Literal["view", "control"]] = Field(default=[VIEW, CONTROL], max_length=2)


@router.post("/runs/{run}/frames", status_code=201)
async def post_frame(run: str, body: FrameBody, server: Server, caller: Viewer) -> Response:
    """A token for this run alone, and the path of the page that takes it as its fragment.

    The token lasts for some hours, and no longer than the caller's own.
    """
    run_id = run_id_of(server, run)
    secret, record = await server.authenticator.open_frame(caller, run_id, body.scopes)
    return json_response(
        {
            "path": f"/frame/{run_id}",
            "token": secret,
            "scopes": sorted(record.scopes),
            "expires_ns": record.expires_ns,
        },
        201,
    )

"""``/api/v1/runs/{run}/map``: the memory map of a rank as it is now."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from vramscope_protocol.errors import NOT_FOUND, VramscopeError
from vramscope_server.api.access import Server, Viewer, json_response, run_id_of

router = APIRouter(tags=["map"])


@router.get("/runs/{run}/map")
async def get_map(
    run: str,
    server: Server,
    _caller: Viewer,
    rank: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Segments and blocks by columns, as of the last frame. An agent sends frames while a page
    follows the map, or for some seconds after the command ``watch_map``."""
    found = server.maps.whole(run_id_of(server, run), rank)
    if found is None:
        raise VramscopeError(
            NOT_FOUND,
            f"no memory map of rank {rank} yet: the command watch_map asks its agent for one",
        )
    return json_response(found)

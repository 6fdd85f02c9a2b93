"""``/api/v1/runs``: the training jobs, and one of them with its ranks."""

from __future__ import annotations

from fastapi import APIRouter, Response

from vramscope_protocol.errors import NOT_FOUND, VramscopeError
from vramscope_server.api.access import Server, Viewer, json_response, run_id_of

router = APIRouter(tags=["runs"])


@router.get("/runs")
async def list_runs(server: Server, _caller: Viewer) -> Response:
    """Every run, newest first."""
    return json_response(server.registry.runs())


@router.get("/runs/{run}")
async def get_run(run: str, server: Server, _caller: Viewer) -> Response:
    """One run, by id or by name (then the latest of that name), with its ranks."""
    found = server.registry.run(run_id_of(server, run))
    if found is None:
        raise VramscopeError(NOT_FOUND, f"no run with the id or the name {run!r}")
    return json_response(found)

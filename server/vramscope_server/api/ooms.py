"""``/api/v1/ooms``: what was known when a rank ran out of memory, and what that says."""

from __future__ import annotations

from fastapi import APIRouter, Response

from vramscope_server.api.access import Server, Viewer, computed_response, json_response, run_id_of

router = APIRouter(tags=["ooms"])


@router.get("/runs/{run}/ooms")
async def list_ooms(run: str, server: Server, _caller: Viewer) -> Response:
    """Times out of memory of a run, the newest first; those of ranks that were only asked for
    their report say whose time it was in ``linked_to``."""
    return json_response({"ooms": await server.ooms.of_run(run_id_of(server, run))})


@router.get("/ooms/{oom}")
async def get_oom(oom: str, server: Server, _caller: Viewer) -> Response:
    """One report, with its verdict and the reports of other ranks at that moment."""
    found = await server.ooms.get(oom)
    return await computed_response(server, lambda: found)

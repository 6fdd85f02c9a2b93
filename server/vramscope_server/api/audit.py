"""``/api/v1/audit``: who asked which job for what, and what came of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from vramscope_server.api.access import Controller, Server, json_response
from vramscope_server.store import audit

router = APIRouter(tags=["audit"])


@router.get("/audit")
async def list_audit(
    server: Server,
    _caller: Controller,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    run: str | None = None,
) -> Response:
    """Lines of the audit log, newest first."""
    # A run that is not known any more may still have lines: its id is taken as it is.
    run_id = None if run is None else server.registry.find(run) or run
    rows = await server.store.read(lambda c: audit.list_audit(c, limit=limit, run=run_id))
    return json_response({"audit": rows})

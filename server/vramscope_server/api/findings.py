"""``/api/v1/runs/{run}/findings``: what is wrong, and what was."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from vramscope_server.api.access import Server, Viewer, run_id_of
from vramscope_server.store import findings

router = APIRouter(tags=["findings"])


@router.get("/runs/{run}/findings")
async def list_findings(
    run: str,
    server: Server,
    _caller: Viewer,
    state: Literal["open", "all"] = "all",
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> dict[str, Any]:
    """The newest findings, newest first; those that hold have no ``resolved_ns``."""
    run_id = run_id_of(server, run)
    await server.board.write()  # what was found a moment ago
    found = await server.store.read(
        lambda c: findings.list_findings(c, run_id, open_only=state == "open", limit=limit)
    )
    return {"findings": [record.payload() for record in found]}

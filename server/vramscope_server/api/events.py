"""``/api/v1/runs/{run}/events``: what happened once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from vramscope_protocol.integers import MAX_INT64
from vramscope_server.api.access import Server, Viewer, computed_response, run_id_of
from vramscope_server.api.query import Int64Bound
from vramscope_server.store import events
from vramscope_server.store.events import EventFilter

router = APIRouter(tags=["events"])


@router.get("/runs/{run}/events")
async def list_events(
    run: str,
    server: Server,
    _caller: Viewer,
    start_ns: Int64Bound = None,
    end_ns: Int64Bound = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    kind: str | None = None,
    without: Annotated[str | None, Query(description="kind that is left out")] = None,
    rank: Annotated[
        int | None, Query(ge=0, le=MAX_INT64, description="of this rank, or of none")
    ] = None,
) -> Response:
    """The last ``limit`` events of the range, oldest first."""
    chosen = EventFilter(start_ns, end_ns, kind, without, rank)
    run_id = run_id_of(server, run)
    return await computed_response(
        server,
        lambda: {
            "events": server.store.read_now(lambda c: events.list_events(c, run_id, chosen, limit))
        },
    )

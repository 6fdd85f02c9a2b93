"""``/api/v1/runs/{run}/steps``: one exact row per optimizer step."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from vramscope_server.api.access import (
    Server,
    Viewer,
    computed_response,
    field_names,
    run_id_of,
)
from vramscope_server.api.query import Int64Bound, RankNumber
from vramscope_server.api.series import MAX_POINTS

router = APIRouter(tags=["steps"])


@router.get("/runs/{run}/steps")
async def get_steps(
    run: str,
    server: Server,
    _caller: Viewer,
    rank: RankNumber = 0,
    start: Annotated[Int64Bound, Query(description="first step")] = None,
    end: Annotated[Int64Bound, Query(description="last step, included")] = None,
    fields: str | None = None,
    points: Annotated[int | None, Query(ge=1, le=MAX_POINTS)] = None,
    life: Annotated[int | None, Query(ge=0, description="only this life of the rank")] = None,
) -> Response:
    """Rows as they were measured; with ``points`` the highest of each bin, never a mean.

    A rank that was restarted may count its steps anew: ``life`` tells its rows apart, and
    ``step_offsets`` is what to add to the steps of each life so that they rise over all of them.
    """
    run_id, names = run_id_of(server, run), field_names(fields)
    offsets = server.registry.step_offsets(run_id, rank)
    return await computed_response(
        server,
        lambda: {
            **server.store.steps(run_id, rank, names, start, end, points, life).payload(),
            "step_offsets": offsets,
        },
    )

"""``/api/v1/runs/{run}/series``: counters over time; and what each series means."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_protocol.series import SERIES
from vramscope_server.api.access import (
    Server,
    Viewer,
    computed_response,
    field_names,
    json_response,
    run_id_of,
)
from vramscope_server.api.query import Int64Bound, RankNumber

router = APIRouter(tags=["series"])

MAX_POINTS: Final = 20_000
MAX_FIELDS: Final = 64


@router.get("/runs/{run}/series")
async def get_series(
    run: str,
    server: Server,
    _caller: Viewer,
    fields: Annotated[str, Query(description="names of series, separated by commas")],
    rank: RankNumber = 0,
    start_ns: Int64Bound = None,
    end_ns: Int64Bound = None,
    points: Annotated[int, Query(ge=1, le=MAX_POINTS)] = 2000,
) -> Response:
    """Minimum, mean and maximum per point; ``resolution_ms`` 0 means raw samples."""
    names = field_names(fields)
    if not names or len(names) > MAX_FIELDS:
        raise VramscopeError(
            BAD_REQUEST, f"fields: expected 1 to {MAX_FIELDS} names, got {len(names or [])}"
        )
    run_id = run_id_of(server, run)
    return await computed_response(
        server,
        lambda: server.store.series(run_id, rank, names, start_ns, end_ns, points).payload(rank),
    )


@router.get("/series-names")
async def list_series_names(_caller: Viewer) -> Response:
    """Every well-known series with its unit and its definition."""
    return json_response({"series": list(SERIES.values())})

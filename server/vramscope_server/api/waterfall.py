"""``/api/v1/runs/{run}/waterfall``: every byte of a device in one part."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from vramscope_analysis.waterfall import DEFINITIONS, PARTS
from vramscope_protocol.integers import MAX_INT64
from vramscope_server.api.access import Server, Viewer, computed_response, run_id_of
from vramscope_server.device_account import DeviceAccounts

router = APIRouter(tags=["waterfall"])


@router.get("/runs/{run}/waterfall")
async def get_waterfall(
    run: str,
    server: Server,
    _caller: Viewer,
    rank: Annotated[int, Query(ge=0, le=MAX_INT64)] = 0,
    step: Annotated[
        int | None, Query(ge=0, le=MAX_INT64, description="the newest one if not given")
    ] = None,
    life: Annotated[int | None, Query(ge=0, description="of this life of the rank")] = None,
) -> Response:
    """The device at the end of a step and at its peak; without a step also at the newest sample.

    ``parts`` says what each part consists of: those of its parts that are not null sum up to it.
    """
    run_id = run_id_of(server, run)
    accounts = DeviceAccounts(server.store)
    info = server.registry.run(run_id) or {}
    newest = next((each["step"] for each in info.get("ranks", ()) if each["rank"] == rank), None)

    def answer() -> dict[str, Any]:
        common = {"run": run_id, "rank": rank, "parts": PARTS, "definitions": DEFINITIONS}
        if step is not None:
            return {**common, "step": accounts.at_step(run_id, rank, step, life), "sample": None}
        return {
            **common,
            "step": accounts.at_last_step(run_id, rank, newest),
            "sample": accounts.at_last_sample(run_id, rank, newest),
        }

    return await computed_response(server, answer)

"""``/api/v1/snapshots``: what is stored, given out as pickles, put in and deleted."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import AsyncGenerator
from typing import Annotated, Any, BinaryIO, Final, cast

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import StreamingResponse

from vramscope_protocol.integers import MAX_INT64
from vramscope_server.api.access import (
    Controller,
    Server,
    Viewer,
    computed_response,
    json_response,
    run_id_of,
)
from vramscope_server.auth.credentials import client_address
from vramscope_server.auth.principal import Principal
from vramscope_server.context import Context
from vramscope_server.snapshots.files import require_complete
from vramscope_server.store import audit

router = APIRouter(tags=["snapshots"])

_NO_NUL: Final = r"^[^\x00]*$"  # PostgreSQL has no text with it
_IN_MEMORY_BYTES: Final = 1 << 20


@router.get("/runs/{run}/snapshots")
async def list_snapshots(run: str, server: Server, _caller: Viewer) -> Response:
    """Snapshots of a run, the latest first, with those that are still coming."""
    found = await server.snapshots.of_run(run_id_of(server, run))
    return await computed_response(server, lambda: {"snapshots": found})


@router.get("/snapshots/{snapshot}")
async def get_snapshot(snapshot: str, server: Server, _caller: Viewer) -> Response:
    """What is known of one snapshot."""
    return json_response(await server.snapshots.get(snapshot))


@router.get("/snapshots/{snapshot}/pickle")
async def get_pickle(snapshot: str, server: Server, _caller: Viewer) -> Response:
    """The snapshot as PyTorch's ``_dump_snapshot`` writes it: a viewer such as memory_viz opens
    it."""
    found = await server.snapshots.get(snapshot)
    require_complete(found)

    async def pieces() -> AsyncGenerator[bytes]:
        unpacked = server.snapshots.unpacked(snapshot, found["raw_bytes"])
        async for piece in iterate_in_threadpool(unpacked):
            yield piece

    headers = {
        "content-length": str(found["raw_bytes"]),
        "content-disposition": f'attachment; filename="{_file_name(found)}"',
    }
    return StreamingResponse(pieces(), media_type="application/octet-stream", headers=headers)


@router.post("/snapshots", status_code=201)
async def post_snapshot(
    request: Request,
    server: Server,
    caller: Controller,
    run: str | None = None,
    rank: Annotated[int | None, Query(ge=0, le=MAX_INT64)] = None,
    name: Annotated[str, Query(max_length=200, pattern=_NO_NUL)] = "",
) -> Response:
    """Store a snapshot that was taken elsewhere: the body is the pickle, gzipped or not."""
    run_id = None if run is None else run_id_of(server, run)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, prefix="vramscope-") as body:
        async for piece in request.stream():
            body.write(piece)
        file = cast("BinaryIO", body)
        stored = await server.snapshots.put(
            file, run_id=run_id, rank=rank, name=name, who=caller.name
        )
    await _note(server, request, caller, "snapshot_upload", stored)
    return json_response(stored, 201)


@router.delete("/snapshots/{snapshot}", status_code=204)
async def delete_snapshot(
    snapshot: str, request: Request, server: Server, caller: Controller
) -> Response:
    """Delete a snapshot, also one that is still coming."""
    deleted = await server.snapshots.delete(snapshot)
    await _note(server, request, caller, "snapshot_delete", deleted)
    return Response(status_code=204)


def _file_name(snapshot: dict[str, Any]) -> str:
    """A name that says what it is, whatever the run is called."""
    words = [snapshot["name"].removesuffix(".gz").removesuffix(".pickle")]
    if not words[0]:
        words = ["snapshot"]
        words += [] if snapshot["rank"] is None else [f"rank{snapshot['rank']}"]
        words += [] if snapshot["step"] is None else [f"step{snapshot['step']}"]
        words.append(snapshot["id"][:8])
    return re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(words))[:120] + ".pickle"


async def _note(
    server: Context, request: Request, caller: Principal, name: str, snapshot: dict[str, Any]
) -> None:
    """Write a line of the audit log."""
    rank = snapshot["rank"]
    row = {
        "time_ns": time.time_ns(),
        "who": caller.name,
        "origin": "api",
        "address": client_address(request),
        "run": snapshot["run"] or "",
        "command_id": snapshot["id"],
        "name": name,
        "ranks": [] if rank is None else [rank],
        "dry_run": False,
        "params": {"name": snapshot["name"], "wire_bytes": snapshot["wire_bytes"]},
        "result": "done",
    }
    await server.store.write(lambda connection: audit.record(connection, row))

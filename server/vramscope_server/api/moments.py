"""``/api/v1/snapshots/...``: what was live in a stored snapshot, when, and what grew."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Response

from vramscope_analysis.moments import (
    By,
    RecordedMemory,
    growth_between,
    moment_of,
    stack_tree,
    timeline_of,
)
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_server.api.access import Server, Viewer
from vramscope_server.context import Context
from vramscope_server.moments.payload import growth_payload, moment_payload, timeline_payload
from vramscope_server.moments.recordings import Wanted

router = APIRouter(tags=["moments"])

MAX_POINTS: Final = 4000

Place = Annotated[
    int | None, Query(ge=0, le=1 << 62, description="microseconds since the epoch, or an entry")
]
Device = Annotated[int | None, Query(ge=0, le=1023)]
At = Annotated[
    str, Query(description="number of an entry, -1 for before the first, 'peak' or 'end'")
]


@router.get("/snapshots/growth")
async def get_growth(
    server: Server,
    _caller: Viewer,
    a: str,
    b: str,
    a_at: At = "end",
    b_at: At = "end",
    device: Device = None,
) -> Response:
    """What grew from a moment of snapshot ``a`` to one of snapshot ``b``, by stack."""
    before, after = await _wanted(server, a, device), await _wanted(server, b, device)

    def answer(old: RecordedMemory, new: RecordedMemory) -> bytes:
        growth = growth_between(old, _moment(old, a_at, "a_at"), new, _moment(new, b_at, "b_at"))
        return msgspec.json.encode(growth_payload(growth))

    return _json(await server.recordings.ask(answer, before, after))


@router.get("/snapshots/{snapshot}/timeline")
async def get_timeline(
    snapshot: str,
    server: Server,
    _caller: Viewer,
    by: By = "stack",
    start: Place = None,
    end: Place = None,
    points: Annotated[int, Query(ge=4, le=MAX_POINTS)] = 1400,
    device: Device = None,
) -> Response:
    """Live memory over the recording: real moments only, the highest of each column."""

    def answer(memory: RecordedMemory) -> bytes:
        timeline = timeline_of(memory, by, start=start, end=end, points=points)
        return msgspec.json.encode(timeline_payload(memory, timeline, by))

    return _json(await server.recordings.ask(answer, await _wanted(server, snapshot, device)))


@router.get("/snapshots/{snapshot}/moment")
async def get_moment(
    snapshot: str,
    server: Server,
    _caller: Viewer,
    at: At = "peak",
    fold: bool = True,
    device: Device = None,
) -> Response:
    """Who held how much at one moment, as tables and as a tree of calls."""

    def answer(memory: RecordedMemory) -> bytes:
        moment = moment_of(memory, _moment(memory, at, "at"))
        tree = stack_tree(memory, moment.moment, fold=fold)
        return msgspec.json.encode(moment_payload(memory, moment, tree, folded=fold))

    return _json(await server.recordings.ask(answer, await _wanted(server, snapshot, device)))


def _json(encoded: bytes) -> Response:
    return Response(encoded, media_type="application/json")


async def _wanted(server: Context, snapshot: str, device: int | None) -> Wanted:
    info: dict[str, Any] = await server.snapshots.get(snapshot)
    return Wanted(snapshot, device, info.get("steps") or ())


def _moment(memory: RecordedMemory, text: str, name: str) -> int:
    if text == "peak":
        return memory.peak_moment
    if text == "end":
        return memory.last_moment
    try:
        moment = int(text)
    except ValueError:
        raise VramscopeError(
            BAD_REQUEST, f"{name}: expected the number of an entry, 'peak' or 'end', got {text!r}"
        ) from None
    if moment != memory.clamped(moment):
        raise VramscopeError(
            BAD_REQUEST, f"{name}: expected an entry from -1 to {memory.last_moment}, got {moment}"
        )
    return moment

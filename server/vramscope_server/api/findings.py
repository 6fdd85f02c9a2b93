"""``/api/v1/runs/{run}/findings``: what is wrong, what was, and what nobody wants to hear of."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vramscope_protocol.errors import NOT_FOUND, VramscopeError
from vramscope_server.api.access import Controller, Server, Viewer, json_response, run_id_of
from vramscope_server.auth.credentials import client_address
from vramscope_server.auth.principal import Principal
from vramscope_server.context import Context
from vramscope_server.findings.record import FindingRecord
from vramscope_server.store import audit, findings

router = APIRouter(tags=["findings"])


class MuteBody(BaseModel):
    """Why, and until when."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reason: str = Field(min_length=1, max_length=400, pattern=r"^[^\x00]*$")
    until: Literal["run", "line", "day"] = Field(
        description="the run is over; for good, in every run of its name; for 24 hours"
    )


@router.get("/runs/{run}/findings")
async def list_findings(
    run: str,
    server: Server,
    _caller: Viewer,
    state: Literal["open", "verdict", "all"] = "all",
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """The newest findings, newest first: those that hold (``open``), those and what held when
    its rank ended (``verdict``), or all."""
    run_id = run_id_of(server, run)
    await server.board.writer.write()  # what was found a moment ago
    found = await server.store.read(
        lambda c: findings.list_findings(c, run_id, state=state, limit=limit)
    )
    now_ns = time.time_ns()
    return json_response(
        {
            "findings": [record.payload(now_ns) for record in found],
            "judged_ns": server.judge_loop.judged_ns(run_id),
            "looked_for": server.judge_loop.looked_for,
        }
    )


@router.get("/runs/{run}/findings/{finding}")
async def get_finding(run: str, finding: str, server: Server, _caller: Viewer) -> Response:
    """One finding."""
    record = await _find(server, run, finding)
    return json_response(record.payload(time.time_ns()))


@router.post("/runs/{run}/findings/{finding}/mute")
async def mute_finding(
    run: str, finding: str, body: MuteBody, request: Request, server: Server, caller: Controller
) -> Response:
    """Hear no more of a finding, for a reason."""
    record = await _find(server, run, finding)
    if body.until == "line":
        caller.require_run(None)  # it is about other runs as well
    await server.board.mutes.mute(record, body.until, body.reason, caller.name)
    asked = {"until": body.until, "reason": body.reason}
    return await _told(server, request, caller, record, "mute_finding", asked)


@router.delete("/runs/{run}/findings/{finding}/mute")
async def unmute_finding(
    run: str, finding: str, request: Request, server: Server, caller: Controller
) -> Response:
    """Hear of it again."""
    record = await _find(server, run, finding)
    if record.muted is not None and record.muted["until"] == "line":
        caller.require_run(None)
    # What is muted for the run alone may be so beside its line.
    await server.board.mutes.unmute(record, in_all_runs=caller.run_id is None)
    return await _told(server, request, caller, record, "unmute_finding", {})


async def _find(server: Context, run: str, finding: str) -> FindingRecord:
    run_id = run_id_of(server, run)
    await server.board.writer.write()
    record = server.board.find(finding)
    if record is None:
        record = await server.store.read(lambda c: findings.get(c, finding))
    if record is None or record.run_id != run_id:
        raise VramscopeError(NOT_FOUND, f"no finding {finding!r} in the run {run!r}")
    return record


async def _told(
    server: Context,
    request: Request,
    caller: Principal,
    record: FindingRecord,
    name: str,
    asked: dict[str, Any],
) -> Response:
    """Write a line of the audit log, and say how the finding is now."""
    now_ns = time.time_ns()
    record.note(now_ns, "unmuted" if record.muted is None else "muted")
    server.board.tell(record)
    row = {
        "time_ns": now_ns,
        "who": caller.name,
        "origin": "api",
        "address": client_address(request),
        "run": record.run_id,
        "command_id": record.id,
        "name": name,
        "ranks": list(record.ranks),
        "dry_run": False,
        "params": {"kind": record.kind, "subject": record.subject, **asked},
        "result": "done",
    }
    await server.store.write(lambda connection: audit.record(connection, row))
    return json_response(record.payload(now_ns))

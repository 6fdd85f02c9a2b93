"""``/api/v1/audit``: who asked which job for what, and what came of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Response
from starlette.responses import StreamingResponse

from vramscope_protocol.integers import MAX_INT64
from vramscope_server.api.access import Controller, Server, json_response
from vramscope_server.api.audit_export import csv_head, csv_lines, json_lines
from vramscope_server.api.query import Int64Bound
from vramscope_server.context import Context
from vramscope_server.store import audit
from vramscope_server.store.audit import AuditFilter

router = APIRouter(tags=["audit"])

_PAGE_ROWS: Final = 500
_TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}

_Word = Annotated[str | None, Query(max_length=512, pattern=r"^[^\x00]*$")]


@router.get("/audit")
async def list_audit(
    server: Server,
    _caller: Controller,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    run: _Word = None,
    who: _Word = None,
    command: _Word = None,
    since_ns: Int64Bound = None,
    until_ns: Int64Bound = None,
    before: Annotated[int | None, Query(ge=1, le=MAX_INT64)] = None,
    format: Literal["json", "csv", "jsonl"] = "json",
) -> Response:
    """Lines of the audit log, newest first: a page of them, or all as a file.

    ``before`` is the ``next`` of the page before; ``command`` is a name; ``since_ns`` is part of
    the time that is asked for, ``until_ns`` is not.
    """
    wanted = AuditFilter(_runs(server, run), who, command, since_ns, until_ns, before)
    if format != "json":
        headers = {"content-disposition": f'attachment; filename="vramscope-audit.{format}"'}
        # The first page is read before the answer begins, so that an error still is one.
        first = await _page(server, wanted, _PAGE_ROWS)
        pieces = _file(server, wanted, format, first)
        return StreamingResponse(pieces, media_type=_TYPES[format], headers=headers)
    rows = await _page(server, wanted, limit)
    # A page may be shorter than its limit: only asking tells whether there is more.
    last = rows[-1]["id"] if rows else None
    older = await _page(server, replace(wanted, before=last), 1) if rows else []
    return json_response({"audit": rows, "next": last if older else None})


def _runs(server: Context, run: str | None) -> tuple[str, ...] | None:
    """What a run is called in the log; one that is not known any more may still have lines."""
    if run is None:
        return None
    run_id = server.registry.find(run)
    # Lines about policies have what the policy says, which may be the name.
    names = (each["name"] for each in server.registry.runs() if each["id"] == run_id)
    return tuple({run, *(() if run_id is None else (run_id,)), *names})


async def _page(server: Context, wanted: AuditFilter, limit: int) -> list[dict[str, Any]]:
    rows = await server.store.read(lambda c: audit.list_audit(c, limit, wanted))
    names = {run["id"]: run["name"] for run in server.registry.runs()}
    return [{**row, "run_name": names.get(row["run"], "")} for row in rows]


async def _file(
    server: Context, wanted: AuditFilter, format: str, page: list[dict[str, Any]]
) -> AsyncGenerator[str]:
    lines = csv_lines if format == "csv" else json_lines
    if format == "csv":
        yield csv_head()
    while page:
        yield lines(page)
        wanted = replace(wanted, before=page[-1]["id"])
        page = await _page(server, wanted, _PAGE_ROWS)

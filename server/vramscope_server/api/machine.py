"""``/api/v1/machine/jobs``: the training processes of the server's own machine.

Only with ``--allow-attach``, and only for whoever sits at that machine. The list is all there is:
attaching is code in another process, and stays a command that its user types.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from vramscope_protocol.errors import FORBIDDEN, VramscopeError
from vramscope_server.api.access import Controller, Server, json_response
from vramscope_server.auth.principal import CONTROL, Principal
from vramscope_server.context import Context
from vramscope_server.machine.local_caller import is_local_caller

router = APIRouter(tags=["machine"])


def may_list_jobs(request: Request, server: Context, caller: Principal) -> bool:
    """Whether this caller is shown the processes of this machine."""
    return (
        server.settings.allow_attach
        and CONTROL in caller.scopes
        and caller.run_id is None  # a page inside another one sees its own run only
        and is_local_caller(request)
    )


@router.get("/machine/jobs")
async def list_jobs(request: Request, server: Server, caller: Controller) -> Response:
    """Training processes, each with the run that it is known as here, if it is."""
    if not server.settings.allow_attach:
        raise VramscopeError(
            FORBIDDEN,
            "expected a server that was started with --allow-attach; "
            "'vramscope ps' lists the same in a shell",
        )
    if not may_list_jobs(request, server, caller):
        raise VramscopeError(FORBIDDEN, "expected a caller on the server's own machine")
    found = await server.training_jobs.list_jobs()
    jobs = [job | {"run": _run_of(server, job)} for job in found.jobs]
    return json_response({"jobs": jobs, "taken_ns": found.taken_ns})


def _run_of(server: Context, job: dict[str, Any]) -> dict[str, str] | None:
    match job:
        case {"pid": int(pid), "started_ns": int(started_ns)}:
            return server.registry.run_of_process(pid, started_ns)
        case _:
            return None

"""``/healthz`` and ``/readyz``: for whoever watches the server. They need no token."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Response

from vramscope_server.api.access import Server, json_response
from vramscope_server.version import server_version

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def get_health() -> Response:
    """The process answers."""
    return json_response({"ok": True, "version": server_version()})


@router.get("/readyz")
async def get_readiness(server: Server) -> Response:
    """Whether data can be taken in: started, not stopping, and the store commits."""
    store = server.store.health()
    ok = server.ready and store.ok
    body = {
        "ok": ok,
        "shutting_down": not server.ready,
        # Why the store fails is in the log: anybody may ask here.
        "store": {name: value for name, value in asdict(store).items() if name != "error"},
        "agents": server.ingest.connection_count,
        "browsers": server.live.connection_count,
    }
    return json_response(body, 200 if ok else 503)

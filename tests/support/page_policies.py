"""Policies and the audit log of the stand-in server, with the shapes of the API."""

from __future__ import annotations

import json
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.page_scenario import GIB


class PagePolicies:
    """What a page reads and writes of policies, and the lines of the audit log."""

    def __init__(self) -> None:
        self.policies: list[dict[str, Any]] = []
        self.firings: dict[str, list[dict[str, Any]]] = {}
        self.audit: list[dict[str, Any]] = []
        self.asked: list[dict[str, str]] = []
        """Queries of the audit log."""
        self.refusal = ""
        """Why the next policy is not taken; empty: it is."""

    def routes(self) -> list[Route]:
        """Addresses below ``/api/v1``."""
        return [
            Route("/policies", self._list),
            Route("/policies", self._make, methods=["POST"]),
            Route("/policies/{id}", self._change, methods=["PUT", "DELETE"]),
            Route("/policies/{id}/firings", self._firings),
            Route("/policies/{id}/{switch}", self._switch, methods=["POST"]),
            Route("/audit", self._audit),
        ]

    async def _list(self, _: Request) -> Response:
        return JSONResponse({"policies": self.policies, "most": 64})

    async def _make(self, request: Request) -> Response:
        if self.refusal:
            body: dict[str, Any] = {
                "error": {"code": "bad_request", "message": self.refusal, "detail": {}}
            }
            return JSONResponse(body, status_code=400)
        self.policies.append(policy(await request.json(), f"{len(self.policies) + 1:016x}"))
        return JSONResponse(self.policies[-1], status_code=201)

    async def _change(self, request: Request) -> Response:
        key = request.path_params["id"]
        at = next(i for i, one in enumerate(self.policies) if one["id"] == key)
        if request.method == "DELETE":
            del self.policies[at]
            return JSONResponse({"deleted": key})
        self.policies[at] = policy(await request.json(), key)
        return JSONResponse(self.policies[at])

    async def _switch(self, request: Request) -> Response:
        found = next(one for one in self.policies if one["id"] == request.path_params["id"])
        found["is_on"] = request.path_params["switch"] == "on"
        return JSONResponse(found)

    async def _firings(self, request: Request) -> Response:
        return JSONResponse({"firings": self.firings.get(request.path_params["id"], [])})

    async def _audit(self, request: Request) -> Response:
        query = dict(request.query_params)
        self.asked.append(query)
        rows = [
            row
            for row in self.audit
            if row["who"] == query.get("who", row["who"])
            and row["name"] == query.get("command", row["name"])
        ]
        return JSONResponse({"audit": rows, "next": None})


def policy(body: dict[str, Any], key: str) -> dict[str, Any]:
    """A policy as the API shows it, from the body of its request."""
    now_ns = time.time_ns()
    return {
        **body,
        "id": key,
        "off_reason": "",
        "failures_in_a_row": 0,
        "says": f"When {json.dumps(body['when'])}, then {body['then']['command']}.",
        "created_ns": now_ns,
        "created_by": "ada",
        "changed_ns": now_ns,
        "changed_by": "ada",
        "fired": 0,
        "last_fired_ns": None,
        "watching": [],
    }


def fired_policy(run: str) -> dict[str, Any]:
    """One that holds on rank 1 and has fired twice."""
    body: dict[str, Any] = {
        "name": "Free the cache when it is full",
        "run": run,
        "when": {"series": "device.used_bytes", "op": ">", "value": 120 * GIB, "ranks": "any"},
        "for": {"seconds": 30},
        "then": {"command": "empty_cache", "params": {}, "ranks": "matching"},
        "every_s": 600,
        "mode": "dry_run",
        "allow_training": False,
        "is_on": True,
    }
    return policy(body, "0000000000000001") | {
        "says": "When device.used_bytes is above 120.0 GiB on any rank for 30 s, free the cache "
        "there, at most every 10 min.",
        "fired": 2,
        "last_fired_ns": time.time_ns() - 90_000_000_000,
        "watching": [
            {
                "run": run,
                "run_name": "eight",
                "holds": True,
                "ranks": [1],
                "held_s": 12.0,
                "held_steps": None,
                "value": 121.5 * GIB,
                "note": "",
            }
        ],
    }


def firing(policy_id: str, run: str) -> dict[str, Any]:
    """One firing in dry-run mode."""
    return {
        "id": 1,
        "policy": policy_id,
        "run": run,
        "run_name": "eight",
        "time_ns": time.time_ns() - 90_000_000_000,
        "mode": "dry_run",
        "ranks": [1],
        "why": "device.used_bytes was 121.5 GiB on rank 1, above 120.0 GiB for 31 s",
        "command": "empty_cache",
        "params": {},
        "command_id": "a" * 32,
        "state": "done",
        "result": "would return 3.1 GiB",
    }


def audit_row(number: int, **changes: Any) -> dict[str, Any]:
    """One line of the audit log."""
    row: dict[str, Any] = {
        "id": number,
        "time_ns": time.time_ns() - number * 60_000_000_000,
        "who": "ada",
        "origin": "browser",
        "address": "127.0.0.1",
        "run": "",
        "run_name": "eight",
        "command_id": f"{number:032x}",
        "name": "empty_cache",
        "ranks": "all",
        "dry_run": False,
        "params": {},
        "result": "done: 3.1 GiB returned",
    }
    return row | changes

"""A stand-in for the server, for tests of the page: its addresses and shapes, generated runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncGenerator
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.support.page_commands import finish, new_command
from tests.support.page_findings import mute
from tests.support.page_lives import phases
from tests.support.page_news import news_of, run_of
from tests.support.page_policies import PagePolicies
from tests.support.page_scenario import Scenario
from vramscope_frontend import INDEX_HTML, STATIC_DIR
from vramscope_server.pages.security_headers import CONTENT_SECURITY_POLICY

PLOTLY = Path(str(files("plotly"))) / "package_data" / "plotly.min.js"


class PageFixtureServer:
    """Serves the page in a thread. Attributes may be changed while it runs."""

    def __init__(
        self,
        scenarios: list[Scenario],
        *,
        scopes: tuple[str, ...] = ("view", "control"),
        signed_in: bool = True,
    ) -> None:
        self.scenarios = scenarios
        self.scopes = list(scopes)
        self.signed_in = signed_in
        self.accepts_live = True
        self.command_outcome = "done"
        self.command_s: float | None = 0.4
        """How long a command takes; None: the test advances and finishes it."""
        self.policies = PagePolicies()
        self.jobs: list[dict[str, Any]] | None = None
        """Training processes of the machine; None: this server does not tell them."""
        self.paths: list[str] = []
        self.posted: list[dict[str, Any]] = []
        self.sockets: set[WebSocket] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()  # uvicorn does so after the application is ready, which is too late
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app(),
                log_level="warning",
                lifespan="on",
                ws="auto",
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._ready = threading.Event()

    def __enter__(self) -> PageFixtureServer:
        self._thread.start()
        if not self._ready.wait(20):
            raise TimeoutError("expected the fixture server to start within 20 s")
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    def cut(self) -> None:
        """Close every live connection and accept no new one until ``accepts_live`` is set."""
        self.accepts_live = False
        loop = self._loop
        assert loop is not None
        for connection in list(self.sockets):
            asyncio.run_coroutine_threadsafe(connection.close(1012), loop).result(5)

    # ------------------------------------------------------------------ application

    def _app(self) -> Starlette:
        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncGenerator[None]:
            self._loop = asyncio.get_running_loop()
            self._ready.set()
            yield

        index = Route("/", self._index)
        api = [
            Route("/session", self._session),
            Route("/series-names", self._series_names),
            Route("/machine/jobs", self._jobs),
            Route("/runs", self._runs),
            Route("/runs/{run}", self._run),
            Route("/runs/{run}/series", self._series),
            Route("/runs/{run}/steps", self._steps),
            Route("/runs/{run}/events", self._events),
            Route("/runs/{run}/findings", self._findings),
            Route("/runs/{run}/findings/{id}/mute", self._mute, methods=["POST", "DELETE"]),
            Route("/runs/{run}/snapshots", self._snapshots),
            Route("/runs/{run}/ooms", self._ooms),
            Route("/ooms/{id}", self._oom),
            Route("/runs/{run}/commands", self._commands, methods=["GET", "POST"]),
            Route("/runs/{run}/commands/{id}", self._command),
            *self.policies.routes(),
        ]
        return Starlette(
            lifespan=lifespan,
            routes=[
                index,
                Route("/runs/{rest:path}", self._index),
                Route("/nowhere", self._index),
                Route("/login", self._login, methods=["POST"]),
                Route("/vendor/plotly.min.js", self._plotly),
                Mount("/api/v1", routes=api),
                Mount("/static", StaticFiles(directory=STATIC_DIR)),
                WebSocketRoute("/ws/live", self._live),
            ],
        )

    async def _index(self, _: Request) -> Response:
        return FileResponse(
            INDEX_HTML, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY}
        )

    async def _plotly(self, _: Request) -> Response:
        return FileResponse(PLOTLY, media_type="text/javascript")

    async def _login(self, request: Request) -> Response:
        if (await request.json())["token"] != "right":
            return error(401, "auth_failed", "The token is not known.")
        self.signed_in = True
        return JSONResponse({})

    async def _session(self, _: Request) -> Response:
        if not self.signed_in:
            return error(401, "auth_failed", "A token is needed.")
        return JSONResponse(
            {
                "scopes": self.scopes,
                "name": "ada@host",
                "server": {
                    "version": "0.1.0",
                    "host": "127.0.0.1",
                    "port": 8470,
                    "attach_list": self.jobs is not None,
                    "found_by_jobs": True,
                },
            }
        )

    async def _jobs(self, request: Request) -> Response:
        self.paths.append(request.url.path)
        if self.jobs is None:
            return error(403, "forbidden", "This server was started without --allow-attach.")
        return JSONResponse({"jobs": self.jobs, "taken_ns": time.time_ns()})

    async def _series_names(self, _: Request) -> Response:
        return JSONResponse(
            {
                "series": [
                    {
                        "name": "reserved_bytes.all.current",
                        "unit": "B",
                        "definition": "Bytes that PyTorch holds from the device.",
                    }
                ]
            }
        )

    def _find(self, request: Request) -> Scenario | None:
        self.paths.append(f"{request.url.path}?{request.url.query}")
        key = request.path_params["run"]
        return next((one for one in self.scenarios if key in (one.id, one.name)), None)

    async def _runs(self, _: Request) -> Response:
        return JSONResponse([run_of(one, with_ranks=False) for one in self.scenarios])

    async def _run(self, request: Request) -> Response:
        scenario = self._find(request)
        return (
            JSONResponse(run_of(scenario, with_ranks=True))
            if scenario
            else error(404, "not_found", "No run of that name or id.")
        )

    async def _series(self, request: Request) -> Response:
        scenario = self._find(request)
        if scenario is None:
            return error(404, "not_found", "No run of that name or id.")
        query = request.query_params
        bound = {
            name: int(query[name]) if name in query else None for name in ("start_ns", "end_ns")
        }
        return JSONResponse(
            scenario.series(
                query["fields"].split(","),
                int(query.get("rank", 0)),
                bound["start_ns"],
                bound["end_ns"],
                int(query.get("points", 2000)),
            )
        )

    async def _steps(self, request: Request) -> Response:
        scenario = self._find(request)
        if scenario is None:
            return error(404, "not_found", "No run of that name or id.")
        query = request.query_params
        points = int(query["points"]) if "points" in query else None
        return JSONResponse(
            scenario.step_rows(
                int(query.get("start", 0)),
                int(query.get("end", 1 << 50)),
                int(query.get("rank", 0)),
                points,
                int(query["life"]) if "life" in query else None,
            )
        )

    async def _events(self, request: Request) -> Response:
        scenario = self._find(request)
        if scenario is None:
            return JSONResponse({"events": []})
        if request.query_params.get("kind") == "phase":
            rank = int(request.query_params["rank"])
            return JSONResponse({"events": phases(scenario, rank)})
        return JSONResponse({"events": scenario.events()})

    async def _findings(self, request: Request) -> Response:
        scenario = self._find(request)
        if scenario is None:
            return JSONResponse({"findings": []})
        return JSONResponse(
            {
                "findings": scenario.findings,
                "judged_ns": time.time_ns() if scenario.judged else None,
                "looked_for": ["leak", "fragmentation", "thrash", "other_process", "near_oom"],
            }
        )

    async def _mute(self, request: Request) -> Response:
        scenario = self._find(request)
        found = [
            one
            for one in (scenario.findings if scenario else [])
            if one["id"] == request.path_params["id"]
        ]
        if "control" not in self.scopes:
            return error(403, "forbidden", "The token has no control right.")
        if not found:
            return error(404, "not_found", "No finding of that id.")
        body = await request.json() if request.method == "POST" else None
        self.posted.append({"mute": body})
        return JSONResponse(mute(found[0], body, time.time_ns()))

    async def _snapshots(self, request: Request) -> Response:
        scenario = self._find(request)
        return JSONResponse({"snapshots": scenario.snapshots if scenario else []})

    async def _ooms(self, request: Request) -> Response:
        scenario = self._find(request)
        keys = {"siblings", "report", "finding", "snapshot"}
        rows = [
            {key: value for key, value in one.items() if key not in keys}
            for one in (scenario.ooms if scenario else [])
        ]
        return JSONResponse({"ooms": rows})

    async def _oom(self, request: Request) -> Response:
        key = request.path_params["id"]
        found = [one for scenario in self.scenarios for one in scenario.ooms if one["id"] == key]
        return JSONResponse(found[0]) if found else error(404, "not_found", "No report of that id.")

    async def _commands(self, request: Request) -> Response:
        scenario = self._find(request)
        if scenario is None:
            return error(404, "not_found", "No run of that name or id.")
        if request.method == "GET":
            return JSONResponse({"commands": list(scenario.commands.values())})
        body = await request.json()
        self.posted.append(body)
        if "control" not in self.scopes:
            return error(403, "forbidden", "The token has no control right.")
        command = new_command(scenario, body)
        scenario.commands[command["id"]] = command
        if self.command_s is not None:
            asyncio.get_running_loop().call_later(
                self.command_s, lambda: finish(scenario, command, self.command_outcome)
            )
        return JSONResponse({"id": command["id"], "state": "queued"}, status_code=202)

    async def _command(self, request: Request) -> Response:
        scenario = self._find(request)
        command = scenario.commands.get(request.path_params["id"]) if scenario else None
        return (
            JSONResponse(command) if command else error(404, "not_found", "No command of that id.")
        )

    # ------------------------------------------------------------------ live feed

    async def _live(self, connection: WebSocket) -> None:
        if not self.accepts_live:
            await connection.close(1012)
            return
        await connection.accept()
        self.sockets.add(connection)
        subscriptions: dict[int, dict[str, Any]] = {}
        feeder = asyncio.create_task(self._feed(connection, subscriptions))
        try:
            await connection.send_text(
                json.dumps(
                    {
                        "type": "hello",
                        "protocol": 1,
                        "scopes": self.scopes,
                        "server_time_ns": time.time_ns(),
                        "software": "fixture",
                        "features": [],
                    }
                )
            )
            while True:
                request = json.loads(await connection.receive_text())
                if request["type"] == "unsubscribe":
                    subscriptions.pop(request["subscription"], None)
                elif request["type"].startswith("subscribe"):
                    subscriptions[request["id"]] = {
                        **request,
                        "since_ns": time.time_ns(),
                        "sent": {},
                    }
                await connection.send_text(
                    json.dumps({"type": "result", "id": request["id"], "ok": True})
                )
        except WebSocketDisconnect:
            pass
        finally:
            self.sockets.discard(connection)
            feeder.cancel()

    async def _feed(self, connection: WebSocket, subscriptions: dict[int, dict[str, Any]]) -> None:
        while True:
            for number, subscription in list(subscriptions.items()):
                for event in news_of(self.scenarios, subscription):
                    with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # closed under us
                        await connection.send_text(
                            json.dumps({"type": "event", "id": number, "event": event})
                        )
            await asyncio.sleep(0.25)


def error(status: int, code: str, message: str) -> JSONResponse:
    """The one shape of an error."""
    return JSONResponse(
        {"error": {"code": code, "message": message, "detail": {}}}, status_code=status
    )

"""The application: its parts, its routes, and the order in which they start and stop."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from vramscope_analysis.diagnosis.diagnose import JUDGES
from vramscope_server.activity import Activity, ActivityMonitor
from vramscope_server.api import (
    audit,
    batch,
    commands,
    events,
    findings,
    frames,
    health,
    machine,
    map,
    moments,
    ooms,
    policies,
    runs,
    series,
    session,
    snapshots,
    steps,
    waterfall,
)
from vramscope_server.auth.authenticator import Authenticator
from vramscope_server.auth.gate import Gate
from vramscope_server.batch.batch_advisor import BatchAdvisor
from vramscope_server.batch.probes import Probes
from vramscope_server.batch.window_replays import WindowReplays
from vramscope_server.commands.coordinator import Coordinator
from vramscope_server.context import Context
from vramscope_server.error_response import install_error_handlers
from vramscope_server.findings.agent_watch import AgentWatch
from vramscope_server.findings.board import FindingsBoard
from vramscope_server.findings.ended_ranks import EndedRanks
from vramscope_server.findings.evidence import GatheredEvidence
from vramscope_server.findings.investigator import Investigator
from vramscope_server.findings.judge_loop import JudgeLoop
from vramscope_server.findings.judging import Judging
from vramscope_server.findings.map_looks import MapLooks
from vramscope_server.findings.settings_trials import SettingsTrials
from vramscope_server.findings.taking_up import TakingUp
from vramscope_server.ingest.directory import AgentDirectory
from vramscope_server.ingest.endpoint import Ingest, IngestLimits
from vramscope_server.live.endpoint import LiveEndpoint
from vramscope_server.live.hub import Hub
from vramscope_server.machine.training_jobs import TrainingJobs
from vramscope_server.maps.maps import Maps
from vramscope_server.moments.recordings import Recordings
from vramscope_server.ooms.other_ranks import OtherRanks
from vramscope_server.ooms.receiver import OomReceiver
from vramscope_server.ooms.reports import OomReports
from vramscope_server.pages import routes as pages
from vramscope_server.pages.plotly_bundle import plotly_router
from vramscope_server.pages.security_headers import SecurityHeaders
from vramscope_server.policies.book import PolicyBook
from vramscope_server.policies.engine import PolicyEngine
from vramscope_server.policies.firing import Firings
from vramscope_server.process import process_alive
from vramscope_server.registry.registry import Registry
from vramscope_server.settings import Settings
from vramscope_server.snapshots.files import SnapshotFiles
from vramscope_server.snapshots.receiver import SnapshotReceiver
from vramscope_server.store.store import Store
from vramscope_server.version import server_software, server_version

_ROUTES = (
    *(runs, series, steps, events, findings, commands, map, moments, ooms, snapshots),
    waterfall,
    *(frames, session, audit, policies, machine, batch),
)


class Application:
    """ASGI application of one server, with the parts that it consists of."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.activity = Activity(
            lambda: context.ingest.connection_count + context.live.connection_count
        )
        self._stopped = False
        door = Gate(_Split(context, self._rest()), context.settings)
        self._app = ActivityMonitor(SecurityHeaders(door), self.activity)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, one connection, or the life of the process."""
        await self._app(scope, receive, send)

    async def start(self) -> None:
        """Load what the store knows, and take up what was open. Nothing is served before."""
        await self.context.ingest.start()
        await self.context.authenticator.start()
        # Before commands are taken up: some of them are those of policies, which hear of the end.
        await self.context.policy_engine.start()
        await self.context.coordinator.start()
        await self.context.judge_loop.start()
        await self.context.snapshots.start()
        await self.context.ooms.start()
        await self.context.probes.start()
        self.context.ready = True

    async def stop(self) -> None:
        """End in stages, each against its own deadline. Stopping twice is harmless.

        1. ``/readyz`` says no, and new peers are refused.
        2. Browsers are told that the server is shutting down, and closed.
        3. Commands write down where they are; they go on at the next start.
        4. Agents are told, and what they have sent is committed and acknowledged.
        5. The store is closed.
        """
        if self._stopped:
            return
        self._stopped = True
        context = self.context
        context.ready = False
        await context.live.shut_down()
        context.hub.close()
        context.maps.close()
        context.recordings.close()
        await context.training_jobs.stop()
        await context.probes.stop()
        await context.batch_advisor.stop()
        await context.policy_engine.stop()
        await context.coordinator.stop()
        await context.ooms.stop()
        await context.judge_loop.stop()
        await context.ingest.stop()
        context.store.close()

    def _rest(self) -> FastAPI:
        @asynccontextmanager
        async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
            await self.start()
            try:
                yield
            finally:
                await self.stop()

        # No documentation pages: FastAPI's load their scripts from another origin.
        app = FastAPI(
            title="vramscope",
            version=server_version(),
            docs_url=None,
            redoc_url=None,
            lifespan=lifespan,
        )
        app.state.context = self.context
        install_error_handlers(app)
        api = APIRouter(prefix="/api/v1")
        for module in _ROUTES:
            api.include_router(module.router)
        app.include_router(api)
        app.include_router(health.router)
        app.include_router(session.login_router)
        app.include_router(plotly_router())
        app.include_router(pages.router)
        app.mount("/static", pages.PageFiles())
        return app


class _Split:
    """Sends the two websockets past FastAPI, which would cost each message more than its work."""

    def __init__(self, context: Context, rest: ASGIApp) -> None:
        self._context = context
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and scope["path"] == "/ws/agent":
            await self._context.ingest(scope, receive, send)
        elif scope["type"] == "websocket" and scope["path"] == "/ws/live":
            await self._context.live(scope, receive, send)
        else:
            await self._rest(scope, receive, send)


def create_app(settings: Settings) -> Application:
    """Build one server. Nothing is shared with another one in the same process.

    Raises:
        VramscopeError: the database cannot be opened.
    """
    limits = settings.limits
    store = Store.open(settings.database)
    authenticator = Authenticator(store, limits, settings.token)
    registry = Registry(time.time_ns, settings.lost_after_s, socket.gethostname(), process_alive)
    directory = AgentDirectory()
    hub = Hub(registry, limits)
    coordinator = Coordinator(store, registry, directory, hub, limits)
    maps = Maps(directory.want_map, limits.map_bytes)
    files = SnapshotFiles(store, hub, lambda uid: directory.of_stream(uid) is not None, limits)
    evidence = GatheredEvidence(registry, maps)
    hub.follow_evidence(evidence)
    reports = OomReports(store, hub, evidence, registry, limits)
    hub.follow_events(reports.take_event)
    hub.follow_events(OtherRanks(coordinator, registry).take_event)
    ingest = Ingest(
        store,
        registry,
        directory,
        hub,
        coordinator,
        authenticator.verify_token,
        snapshots=SnapshotReceiver(store, files, limits),
        ooms=OomReceiver(reports, registry, limits.oom_partial_bytes),
        maps=maps,
        software=server_software(),
        limits=IngestLimits(max_message_bytes=limits.max_message_bytes),
        reachable=settings.is_reachable,
    )
    board = FindingsBoard(store, registry, hub)
    registry.say_verdicts(board.verdict)
    hub.follow_statuses(AgentWatch(board).take_status)
    judge_loop = JudgeLoop(
        registry,
        evidence,
        board,
        Judging(JUDGES),
        TakingUp(store, registry, evidence, board, time.time_ns),
        EndedRanks(store, registry, board),
        Investigator(coordinator, first_wait_s=limits.ask_interval_s),
        SettingsTrials(evidence, files.open_now),
        MapLooks(maps),
        interval_s=limits.judge_interval_s,
    )
    batch_advisor = BatchAdvisor(store, registry, WindowReplays(files.open_now))
    book = PolicyBook(store)
    policy_engine = PolicyEngine(
        book,
        Firings(store, book, coordinator),
        registry,
        board,
        interval_s=limits.policy_interval_s,
    )
    hub.follow_evidence(policy_engine)
    live = LiveEndpoint(hub, registry, authenticator, limits, maps)
    return Application(
        Context(
            settings,
            store,
            authenticator,
            registry,
            directory,
            hub,
            coordinator,
            ingest,
            live,
            TrainingJobs(limits),
            board,
            evidence,
            judge_loop,
            files,
            reports,
            Recordings(files.open_now),
            maps,
            batch_advisor,
            Probes(store, registry, batch_advisor, coordinator),
            book,
            policy_engine,
        )
    )

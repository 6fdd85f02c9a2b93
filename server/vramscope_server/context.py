"""The parts of one running server, and how a request reaches them."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from vramscope_server.auth.authenticator import Authenticator
from vramscope_server.batch.batch_advisor import BatchAdvisor
from vramscope_server.batch.probes import Probes
from vramscope_server.commands.coordinator import Coordinator
from vramscope_server.findings.board import FindingsBoard
from vramscope_server.findings.evidence import GatheredEvidence
from vramscope_server.findings.judge_loop import JudgeLoop
from vramscope_server.ingest.directory import AgentDirectory
from vramscope_server.ingest.endpoint import Ingest
from vramscope_server.live.endpoint import LiveEndpoint
from vramscope_server.live.hub import Hub
from vramscope_server.machine.training_jobs import TrainingJobs
from vramscope_server.maps.maps import Maps
from vramscope_server.moments.recordings import Recordings
from vramscope_server.ooms.reports import OomReports
from vramscope_server.policies.book import PolicyBook
from vramscope_server.policies.engine import PolicyEngine
from vramscope_server.registry.registry import Registry
from vramscope_server.settings import Settings
from vramscope_server.snapshots.files import SnapshotFiles
from vramscope_server.store.store import Store


@dataclass
class Context:
    """Everything that one server consists of. Two servers in one process share nothing."""

    settings: Settings
    store: Store
    authenticator: Authenticator
    registry: Registry
    directory: AgentDirectory
    hub: Hub
    coordinator: Coordinator
    ingest: Ingest
    live: LiveEndpoint
    training_jobs: TrainingJobs
    board: FindingsBoard
    evidence: GatheredEvidence
    judge_loop: JudgeLoop
    snapshots: SnapshotFiles
    ooms: OomReports
    recordings: Recordings
    maps: Maps
    batch_advisor: BatchAdvisor
    probes: Probes
    policies: PolicyBook
    policy_engine: PolicyEngine
    port: int = field(default=0)
    """Port that was really bound; 0 until the server listens."""
    ready: bool = False
    """Started and not yet shutting down."""


def context_of(connection: HTTPConnection) -> Context:
    """The server that a request was sent to."""
    context = connection.app.state.context
    assert isinstance(context, Context)
    return context

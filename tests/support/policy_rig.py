"""Policies with a coordinator that only notes, and a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.support.made_policies import GIB, policy_body
from tests.support.server_rows import make_rows
from tests.support.streams import open_store
from vramscope_protocol.commands import CommandState, Receipt
from vramscope_protocol.errors import VramscopeError
from vramscope_server.commands.record import CommandRecord, RankAnswer
from vramscope_server.commands.request import CommandRequest, Issuer
from vramscope_server.findings.record import FindingRecord
from vramscope_server.policies.book import Author, PolicyBook
from vramscope_server.policies.engine import PolicyEngine
from vramscope_server.policies.firing import Firings
from vramscope_server.policies.record import PolicyRecord
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.store import audit
from vramscope_server.store.store import Store

S = 10**9
ME = Author("me", "api", "")


class NotingCoordinator:
    """Takes commands, and answers them when the test says so."""

    def __init__(self) -> None:
        self.records: list[CommandRecord] = []
        self.issuers: list[Issuer] = []
        self.requests: list[CommandRequest] = []
        self.refuses: VramscopeError | None = None

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> CommandRecord:
        """Note it."""
        if self.refuses is not None:
            raise self.refuses
        ranks = [0, 1] if request.ranks == "all" else request.ranks
        assert request.id is not None
        record = CommandRecord(
            request.id, run, request.name, request.params or {}, request.dry_run, ranks,
            issuer.principal.name, issuer.origin, 0, int(request.deadline_s * S),
        )  # fmt: skip
        self.records.append(record)
        self.issuers.append(issuer)
        self.requests.append(request)
        return record


class PolicyRig:
    """An engine with everything that it reads, made up."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now_s = 1000.0
        self.coordinator = NotingCoordinator()
        self.findings: list[FindingRecord] = []
        self.connected = {"r1": [0, 1], "r2": [0]}
        self.states: dict[int, str] = {}
        """Of ranks that are not live."""
        self.book = PolicyBook(store, self.now_ns)
        self.firings = Firings(store, self.book, self.coordinator, self.now_ns)
        self.engine = PolicyEngine(self.book, self.firings, self, self, self.now_ns, 3600)

    def now_ns(self) -> int:
        """The time."""
        return int(self.now_s * S)

    def run(self, run_id: str) -> dict[str, Any] | None:
        """As the registry has it."""
        ranks = [
            {"rank": rank, "state": self.states.get(rank, "live")}
            for rank in self.connected[run_id]
        ]
        return {"id": run_id, "name": f"name of {run_id}", "state": "live", "ranks": ranks}

    def connected_ranks(self, run_id: str) -> list[int]:
        """As the registry has it."""
        return [rank for rank in self.connected[run_id] if rank not in self.states]

    def open_of(self, run_id: str) -> list[FindingRecord]:
        """As the board has it."""
        return self.findings

    async def policy(self, **changes: Any) -> PolicyRecord:
        """A new policy that is on and acts."""
        return await self.book.create(policy_body(**({"is_on": True, "mode": "act"} | changes)), ME)

    def second(self, run_id: str = "r1", ranks: tuple[int, ...] = (0, 1), gib: int = 7) -> None:
        """A second passes, in which ranks send a sample and a step."""
        self.now_s += 1
        for rank in ranks:
            columns = {
                "time_ns": [self.now_ns()],
                "step": [int(self.now_s)],
                "reserved_bytes__all__current": [gib * GIB],
            }
            self.engine.take_samples(run_id, rank, make_rows("sample", **columns))
            self.engine.take_steps(run_id, rank, make_rows("step", **columns), LifeOffset(0, 0))

    async def seconds(self, count: int, **options: Any) -> None:
        """Some of these, with a decision after each."""
        for _ in range(count):
            self.second(**options)
            await self.engine.decide()

    async def answer(self, state: CommandState = "done", message: str = "") -> None:
        """Every rank answers the newest command."""
        record = self.coordinator.records[-1]
        for rank in record.ranks:
            record.answer(rank, RankAnswer(state, 1, Receipt(state, message=message)))
        self.engine.take_command(record.run_id, record.as_dict())
        await self.engine.decide()

    async def audit(self) -> list[dict[str, Any]]:
        """What policies did, newest first; their making is left out."""
        rows = await self.store.read(audit.list_audit)
        return [row for row in rows if row["origin"] != "api"]

    @property
    def asked(self) -> list[tuple[str, list[int], bool]]:
        """Commands, their ranks, and whether only a dry run."""
        return [(each.name, each.ranks, each.dry_run) for each in self.coordinator.records]


def with_rig(folder: Path, act: Callable[[PolicyRig], Awaitable[Any]]) -> Any:
    """What ``act`` does with a rig on the database in ``folder``."""
    store = open_store(folder)

    async def run() -> Any:
        rig = PolicyRig(store)
        await rig.engine.start()
        try:
            return await act(rig)
        finally:
            await rig.engine.stop()

    try:
        return asyncio.run(run())
    finally:
        store.close()

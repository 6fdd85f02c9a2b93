"""Takes up what was there before: findings of the store, and the evidence behind them.

After a restart of the server, and when a rank comes over from another one, judges would begin
with nothing and take everything back that they had said.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import numpy as np
from sqlalchemy import Connection

from vramscope_analysis.diagnosis.questions import COMMAND
from vramscope_analysis.evidence.columns import Rows
from vramscope_protocol.errors import VramscopeError
from vramscope_server.findings.board import FindingsBoard
from vramscope_server.findings.evidence import MAX_RUNS, MOST_STEPS, GatheredEvidence
from vramscope_server.findings.gathered_rank import CLOCKS_NS, MAX_EVENTS, GatheredRank
from vramscope_server.findings.record import CONTINUES_NS
from vramscope_server.findings.shelf import MAX_OPEN, MAX_PAST
from vramscope_server.store import command_log, events, findings, snapshots
from vramscope_server.store.runs import ranks_seen
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.findings")

_MAX_COMMANDS: Final = 64
_MAX_SNAPSHOTS: Final = 16


class RunStates(Protocol):
    """What is read of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


class TakingUp:
    """Reads from the store what the board and the evidence lack.

    Args:
        store: has everything.
        registry: knows at which step a rank is.
        evidence: says which ranks are heard for the first time.
        board: takes findings.
        clock_ns: the time.
    """

    def __init__(
        self,
        store: Store,
        registry: RunStates,
        evidence: GatheredEvidence,
        board: FindingsBoard,
        clock_ns: Callable[[], int],
    ) -> None:
        self._store = store
        self._registry = registry
        self._evidence = evidence
        self._board = board
        self._clock_ns = clock_ns
        self._first_ranks: dict[str, int] = {}

    async def start(self) -> None:
        """Load the findings that are open, and those that may hold again, and the mutes."""
        since_ns = self._clock_ns() - CONTINUES_NS
        await self._board.mutes.start()
        self._board.adopt(await self._store.read(lambda c: findings.list_open(c, MAX_OPEN)))
        self._board.adopt(
            await self._store.read(lambda c: findings.list_past(c, since_ns, MAX_PAST))
        )

    async def take_up_begun(self) -> None:
        """Complete the ranks that were heard for the first time."""
        begun, self._evidence.begun = self._evidence.begun, []
        for run_id in dict.fromkeys(run_id for run_id, _ in begun):
            ranks = [rank for of, rank in begun if of == run_id]
            try:
                await self._take_up(run_id, ranks)
            except VramscopeError as error:
                _logger.error("earlier evidence of %s could not be read: %s", run_id, error.message)

    def compares_ranks(self, run_id: str, ranks: Iterable[int]) -> bool:
        """Whether it is this server that compares the ranks of a run: the one of the first."""
        first = self._first_ranks.get(run_id, 0)
        return any(rank <= first for rank in ranks)

    async def _take_up(self, run_id: str, ranks: list[int]) -> None:
        def read(connection: Connection) -> tuple[Any, Any, Any, Any]:
            return (
                findings.list_findings(connection, run_id, state="open", limit=MAX_OPEN),
                ranks_seen(connection, run_id),
                command_log.list_commands(connection, run_id, limit=_MAX_COMMANDS),
                snapshots.of_run(connection, run_id, _MAX_SNAPSHOTS),
            )

        open_ones, seen, commands, taken = await self._store.read(read)
        self._first_ranks[run_id] = min(seen, default=min(ranks))
        while len(self._first_ranks) > MAX_RUNS:
            del self._first_ranks[next(iter(self._first_ranks))]
        self._board.adopt(open_ones)
        state = self._registry.run(run_id)
        run = self._evidence.run(run_id)
        if state is None or run is None:
            return
        newest = {rank["rank"]: rank["step"] for rank in state["ranks"]}
        for rank in ranks:
            gathered = run.ranks.get(rank)
            if gathered is not None:
                await self._complete(run_id, rank, gathered, newest.get(rank))
        for command in reversed(commands):
            if command["name"] == COMMAND:
                self._evidence.take_command(run_id, command)
        for snapshot in reversed(taken):
            self._evidence.take_snapshot(run_id, snapshot)

    async def _complete(
        self, run_id: str, rank: int, gathered: GatheredRank, newest: int | None
    ) -> None:
        since_ns = max(0, gathered.started_ns - CLOCKS_NS)
        chosen = events.EventFilter(start_ns=since_ns, rank=rank)
        found = await self._store.read(lambda c: events.list_events(c, run_id, chosen, MAX_EVENTS))
        gathered.put_events_before(found)
        if newest is None:
            return
        steps = await self._store.compute(
            lambda: self._store.steps(run_id, rank, start=max(0, newest - MOST_STEPS))
        )
        own = np.flatnonzero(steps.time_ns >= since_ns)
        gathered.steps.put_before(
            Rows(
                steps.time_ns[own],
                {name: column[own] for name, column in steps.columns.items()},
                steps.step[own],
            )
        )

"""The findings that are open: opened, brought up to date, resolved, told and stored.

Whoever judges reports what holds now, each time anew; the board knows what was open before. So a
kind of finding needs no memory of its own, and goes on over a restart of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from copy import copy
from typing import Any, Final, Protocol

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_protocol.errors import VramscopeError
from vramscope_server.findings.record import FindingRecord, opened
from vramscope_server.store import findings
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.findings")

MAX_OPEN: Final = 10_000
"""Findings that are open at once; beyond it no more are opened."""

_LOOK_S: Final = 5.0
_STOP_S: Final = 2.0
_RETOLD_NS: Final = 10 * 10**9
"""New words for an open finding are told and stored at most this often."""

Key = tuple[str, int | None, str]


class RunStates(Protocol):
    """What the board reads of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


class FindingAudience(Protocol):
    """Who is told."""

    def publish_finding(self, run_id: str, finding: dict[str, Any]) -> None:
        """Hand the present state of a finding on."""
        ...


class FindingsBoard:
    """The open findings of all runs. Lives on the event loop; only storing is awaited."""

    def __init__(
        self,
        store: Store,
        registry: RunStates,
        audience: FindingAudience,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._registry = registry
        self._audience = audience
        self._clock_ns = clock_ns
        self._open: dict[Key, FindingRecord] = {}
        self._told_ns: dict[str, int] = {}
        self._untold: set[str] = set()
        self._dirty: dict[str, FindingRecord] = {}
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take up what was open when the server stopped."""
        for record in await self._store.read(lambda c: findings.list_open(c, MAX_OPEN)):
            self._open[record.run_id, record.rank, record.kind] = record
        self._task = asyncio.create_task(self._look_again(), name="vramscope-findings")

    async def stop(self) -> None:
        """Store what has changed, against a deadline, and end."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait({self._task})
        self._task = None
        try:
            await asyncio.wait_for(self.write(), _STOP_S)
        except asyncio.TimeoutError:
            _logger.error("%d findings could not be stored before the end", len(self._dirty))

    def is_open(self, run_id: str, rank: int | None, kind: str) -> bool:
        """Whether such a finding holds."""
        return (run_id, rank, kind) in self._open

    def report(self, run_id: str, rank: int | None, kind: str, finding: Finding | None) -> None:
        """Say what holds now; ``None`` resolves what was open."""
        key = (run_id, rank, kind)
        record = self._open.get(key)
        if finding is None:
            if record is not None:
                self._resolve(key, self._clock_ns())
            return
        now_ns = self._clock_ns()
        if record is None:
            if len(self._open) >= MAX_OPEN:
                return
            record = self._open[key] = opened(run_id, rank, finding, now_ns)
        else:
            if record.take(finding):
                self._untold.add(record.id)
            # A clock that was set back must not make the words wait for it.
            waited_ns = abs(now_ns - self._told_ns.get(record.id, 0))
            if record.id not in self._untold or waited_ns < _RETOLD_NS:
                return
        self._tell(record, now_ns)

    def resolve_ended(self) -> None:
        """Resolve what was open on ranks that have ended or gone silent for good."""
        ends: dict[str, dict[int, int]] = {}
        for key in list(self._open):
            run_id, rank, _kind = key
            if run_id not in ends:
                ends[run_id] = self._ends(run_id)
            if rank in ends[run_id]:
                self._resolve(key, ends[run_id][rank])

    def _ends(self, run_id: str) -> dict[int, int]:
        """When those ranks ended that have; of a run that is forgotten nothing is known."""
        run = self._registry.run(run_id) or {"ranks": []}
        return {
            rank["rank"]: rank["ended_ns"] or rank["last_seen_ns"]
            for rank in run["ranks"]
            if rank["state"] != "live"
        }

    def _resolve(self, key: Key, time_ns: int) -> None:
        record = self._open.pop(key)
        record.resolved_ns = max(time_ns, record.opened_ns)
        self._tell(record, self._clock_ns())
        self._told_ns.pop(record.id, None)

    def _tell(self, record: FindingRecord, now_ns: int) -> None:
        self._told_ns[record.id] = now_ns
        self._untold.discard(record.id)
        self._dirty[record.id] = copy(record)
        self._changed.set()
        self._audience.publish_finding(record.run_id, record.payload())

    async def write(self) -> None:
        """Store what has changed; what the database does not take now is tried again later."""
        async with self._writing:
            records, self._dirty = self._dirty, {}
            if not records:
                return
            try:
                await self._store.write(lambda c: findings.put(c, list(records.values())))
            except VramscopeError as error:
                _logger.error("findings could not be stored: %s", error.message)
                # What has changed meanwhile is newer.
                self._dirty = records | self._dirty

    async def _look_again(self) -> None:
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _LOOK_S)
            self._changed.clear()
            self.resolve_ended()
            await self.write()

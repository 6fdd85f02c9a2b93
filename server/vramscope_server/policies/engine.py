"""Holds every policy against what comes, and lets those act that are due.

What comes is only noted, batch by batch, for the policies that are about it; once a second is
decided. Nothing is read from the store for that.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from vramscope_protocol.errors import VramscopeError
from vramscope_server.findings.record import FindingRecord
from vramscope_server.policies.book import PolicyBook
from vramscope_server.policies.definition import SeriesCondition
from vramscope_server.policies.firing import Firings
from vramscope_server.policies.pulse import SILENT_NS, Pulse
from vramscope_server.policies.record import PolicyRecord
from vramscope_server.policies.series_values import series_values
from vramscope_server.policies.watch import Met, Watch
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.rows import Rows

_logger = logging.getLogger("vramscope.policies")

_MOST_SHOWN: Final = 32
"""Runs whose state is told of one policy."""


class RunStates(Protocol):
    """What is read of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...

    def connected_ranks(self, run_id: str) -> list[int]:
        """Ranks with an open connection."""
        ...


class OpenFindings(Protocol):
    """What is read of the board."""

    def open_of(self, run_id: str) -> Sequence[FindingRecord]:
        """The findings of a run that hold."""
        ...


@dataclass
class _WatchedRun:
    name: str
    version: int = -1
    """Of the book, when the watches were made."""
    watches: dict[str, tuple[PolicyRecord, Watch]] = field(
        default_factory=dict[str, tuple[PolicyRecord, Watch]]
    )
    by_series: dict[str, list[Watch]] = field(default_factory=dict[str, list[Watch]])
    pulses: dict[int, Pulse] = field(default_factory=dict[int, Pulse])
    step: int = 0
    heard_ns: int = 0
    fresh: frozenset[int] = frozenset()


class PolicyEngine:
    """Listens to the hub. Lives on the event loop; taking neither waits, blocks nor raises.

    Args:
        interval_s: time between two decisions.
    """

    def __init__(
        self,
        book: PolicyBook,
        firings: Firings,
        registry: RunStates,
        board: OpenFindings,
        clock_ns: Callable[[], int] = time.time_ns,
        interval_s: float = 1.0,
    ) -> None:
        self._book = book
        self._firings = firings
        self._registry = registry
        self._board = board
        self._clock_ns = clock_ns
        self._interval_s = interval_s
        self._runs: dict[str, _WatchedRun] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load the policies and begin to decide."""
        await self._book.start()
        await self._firings.start()
        self._task = asyncio.create_task(self._decide_always(), name="vramscope-policies")

    async def stop(self) -> None:
        """End. What was begun is taken up at the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None

    def take_samples(self, run_id: str, rank: int, rows: Rows) -> None:
        """New samples of a rank."""
        run = self._watched(run_id)
        if run is not None:
            run.pulses.setdefault(rank, Pulse()).heard(int(rows.time_ns[-1]))
            self._take(run, rank, rows)

    def take_steps(self, run_id: str, rank: int, rows: Rows, life: LifeOffset) -> None:
        """New steps of a rank."""
        run = self._watched(run_id)
        if run is not None:
            self._take(run, rank, rows)

    def take_command(self, run_id: str, command: dict[str, Any]) -> None:
        """A command has changed."""
        self._firings.take_command(command)

    def take_event(self, run_id: str, event: dict[str, Any]) -> None:
        """No policy is about events."""

    def take_status(self, run_id: str, rank: int, status: dict[str, Any]) -> None:
        """No policy is about what agents say of themselves."""

    def take_snapshot(self, run_id: str, snapshot: dict[str, Any]) -> None:
        """No policy is about snapshots."""

    def watching(self, policy: PolicyRecord) -> list[dict[str, Any]]:
        """How things are with a policy in each run that it watches."""
        told: list[dict[str, Any]] = []
        for run_id, run in self._runs.items():
            watched = run.watches.get(policy.id)
            if watched is not None and watched[0] is policy and len(told) < _MOST_SHOWN:
                told.append({"run": run_id, "run_name": run.name, **watched[1].state(run.fresh)})
        return told

    async def decide(self) -> None:
        """Write down what was answered, and let every policy act that is due.

        Raises:
            VramscopeError: ``internal``: the store does not take it; the next time may do.
        """
        await self._firings.take_answers()
        for run_id, run in tuple(self._runs.items()):
            now_ns = self._clock_ns()
            self._follow(run_id, run)
            connected = frozenset(self._registry.connected_ranks(run_id))
            beating = {rank for rank, pulse in run.pulses.items() if pulse.look(now_ns)}
            run.fresh = connected & beating
            if not connected and abs(now_ns - run.heard_ns) > SILENT_NS:
                del self._runs[run_id]
            elif connected and run.watches:
                await self._decide_in(run_id, run, now_ns)

    def _watched(self, run_id: str) -> _WatchedRun | None:
        run = self._runs.get(run_id)
        if run is None:
            if not any(policy.is_on for policy in self._book.all()):
                return None
            state = self._registry.run(run_id)
            if state is None:
                return None
            run = self._runs[run_id] = _WatchedRun(state["name"])
        self._follow(run_id, run)
        run.heard_ns = self._clock_ns()
        return run

    def _follow(self, run_id: str, run: _WatchedRun) -> None:
        """Watch what is on by now; what was watched before goes on."""
        if run.version == self._book.version:
            return
        run.version = self._book.version
        wanted = {
            policy.id: policy
            for policy in self._book.all()
            if policy.is_on and policy.definition.is_for(run_id, run.name)
        }
        before = run.watches
        run.watches = {
            policy.id: before[policy.id]
            if policy.id in before and before[policy.id][0] is policy
            else (policy, Watch(policy.definition))
            for policy in wanted.values()
        }
        run.by_series = {}
        for _policy, watch in run.watches.values():
            if watch.series is not None:
                run.by_series.setdefault(watch.series, []).append(watch)

    def _take(self, run: _WatchedRun, rank: int, rows: Rows) -> None:
        run.step = int(rows.step[-1])
        for series, watches in run.by_series.items():
            values = series_values(rows, series)
            if values is not None:
                for watch in watches:
                    watch.take(rank, values)

    async def _decide_in(self, run_id: str, run: _WatchedRun, now_ns: int) -> None:
        findings: Sequence[FindingRecord] | None = None
        for policy, watch in tuple(run.watches.values()):
            if watch.series is None:
                findings = self._board.open_of(run_id) if findings is None else findings
                watch.take_findings(findings, now_ns, run.step)
            met = watch.met(run.fresh) if run.fresh else None
            if met is not None and self._may_fire(policy, run_id, run, now_ns):
                await self._fire(policy, run_id, run.name, met)

    def _may_fire(self, policy: PolicyRecord, run_id: str, run: _WatchedRun, now_ns: int) -> bool:
        if self._book.find(policy.id) is not policy or not policy.is_on:
            return False  # changed while another one was acting
        last_ns = policy.last_fired_ns.get(run_id)
        if last_ns is not None and last_ns > now_ns:
            policy.last_fired_ns[run_id] = now_ns  # the clock was set back
            return False
        if last_ns is not None and now_ns - last_ns < policy.definition.every_s * 1e9:
            return False
        if self._firings.is_waiting(policy.id, run_id):
            return False
        return self._is_sure(policy, run_id, run)

    def _is_sure(self, policy: PolicyRecord, run_id: str, run: _WatchedRun) -> bool:
        """Whether nothing is unknown that it depends on: of a lost rank it is not known."""
        state = self._registry.run(run_id)
        if state is None or state["state"] != "live":
            return False
        when = policy.definition.when
        if not isinstance(when, SeriesCondition) or when.ranks == "any":
            return True
        return all(rank["rank"] in run.fresh for rank in state["ranks"] if rank["state"] != "ended")

    async def _fire(self, policy: PolicyRecord, run_id: str, run_name: str, met: Met) -> None:
        name = policy.definition.name
        _logger.info("the policy %r acts in %s (%s)", name, run_id, policy.definition.mode)
        await self._firings.fire(policy, run_id, run_name, met)

    async def _decide_always(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self._book.refresh()  # another server may have changed one
                await self.decide()
            except VramscopeError as error:
                _logger.error("policies could not be written down: %s", error.message)
            except Exception:  # whatever it was: the next time may do
                _logger.exception("deciding on policies failed")

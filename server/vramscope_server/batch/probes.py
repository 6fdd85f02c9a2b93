"""The probes of all runs: one at a time in each, set back even by the server that comes after."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import OrderedDict
from functools import partial
from typing import Any, Final, Protocol

from sqlalchemy import Connection

from vramscope_analysis.batch.probe_plan import probe_plan
from vramscope_analysis.batch.room import HEAD_ROOM
from vramscope_analysis.batch.run_advice import RunAdvice
from vramscope_protocol.errors import CONFLICT, NOT_FOUND, VramscopeError
from vramscope_server.auth.principal import CONTROL, VIEW, Principal
from vramscope_server.batch.batch_advisor import BatchAdvisor
from vramscope_server.batch.probe import COMMAND, Asking, Probe, left_behind
from vramscope_server.commands.request import Issuer
from vramscope_server.store import command_log
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.batch")

ISSUER: Final = "vramscope"
TAKE_UP_S: Final = 300.0
"""So long a probe that a server left behind waits for its ranks."""

_MOST_KEPT: Final = 64
_MOST_COMMANDS: Final = 32
_POLL_S: Final = 0.5


class RunList(Protocol):
    """What is read of the registry."""

    def runs(self) -> list[dict[str, Any]]:
        """Every run, without its ranks."""
        ...

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


class Probes:
    """Lives on the event loop.

    Args:
        store: has the commands of before.
        registry: which ranks there are.
        advisor: says what to probe, and whether enough was seen.
        asking: carries the commands.
    """

    def __init__(
        self, store: Store, registry: RunList, advisor: BatchAdvisor, asking: Asking
    ) -> None:
        self._store = store
        self._registry = registry
        self._advisor = advisor
        self._asking = asking
        self._probes: OrderedDict[str, Probe] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def of_run(self, run_id: str) -> Probe | None:
        """The newest probe of a run."""
        return self._probes.get(run_id)

    async def start(self) -> None:
        """Take up the probes that were under way when the server stopped."""
        if not self._store.is_sole:
            return  # they belong to the other server
        for run_id in [run["id"] for run in self._registry.runs() if run["state"] != "ended"]:
            commands = await self._store.read(partial(_newest_commands, run_id=run_id))
            newest = next((c for c in commands if c["name"] == COMMAND and not c["dry_run"]), None)
            found = None if newest is None else left_behind(newest)
            if found is not None:
                issuer = Issuer(Principal(ISSUER, frozenset({VIEW, CONTROL})), "server", "")
                probe = Probe(found[0], run_id, found[1], issuer, "going_back")
                self._keep(probe)
                self._begin(self._take_up(probe))

    async def begin(self, run_id: str, batch: int, issuer: Issuer) -> Probe:
        """Begin the probe that is advised.

        Args:
            run_id: the run.
            batch: its size, as whoever consents has read it.
            issuer: who consents.

        Raises:
            VramscopeError: ``conflict``: one is under way, or another size is advised by now.
        """
        known = self._probes.get(run_id)
        if known is not None and not known.is_over:
            raise VramscopeError(CONFLICT, f"a probe with {known.plan.batch} samples is under way")
        advice = await self._advisor.advise(run_id, HEAD_ROOM)
        plan = probe_plan(advice) if isinstance(advice, RunAdvice) else None
        if plan is None or plan.batch != batch:
            now = "none" if plan is None else f"one with {plan.batch}"
            raise VramscopeError(CONFLICT, f"expected a probe that is advised, {now}, got {batch}")
        probe = Probe(f"probe-{uuid.uuid4().hex[:12]}", run_id, plan, issuer)
        self._keep(probe)
        self._begin(probe.run(self._asking, partial(self._is_seen, probe)))
        return probe

    def end(self, run_id: str) -> Probe:
        """Set the size back now.

        Raises:
            VramscopeError: ``not_found``: none is under way.
        """
        probe = self._probes.get(run_id)
        if probe is None or probe.is_over:
            raise VramscopeError(NOT_FOUND, "no probe is under way in this run")
        probe.ended.set()
        return probe

    async def stop(self) -> None:
        """End; what is under way is set back at the next start."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _keep(self, probe: Probe) -> None:
        self._probes[probe.run_id] = probe
        self._probes.move_to_end(probe.run_id)
        while len(self._probes) > _MOST_KEPT:
            self._probes.popitem(last=False)

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work, name="vramscope-probe")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _is_seen(self, probe: Probe) -> bool:
        tried = await self._advisor.tried(probe.run_id, HEAD_ROOM)
        return bool(tried) and all(probe.plan.batch in sizes for sizes in tried.values())

    async def _take_up(self, probe: Probe) -> None:
        """Set back what another server has left, as soon as all ranks are here."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + TAKE_UP_S
        while loop.time() < until_s:
            state = self._registry.run(probe.run_id)
            if state is None or state["state"] == "ended":
                break
            if all(rank["connected"] for rank in state["ranks"]):
                try:
                    await probe.go_back(self._asking)
                except VramscopeError as error:
                    _logger.error("a probe could not be set back: %s", error.message)
                    probe.state, probe.text = "failed", error.message
                return
            await asyncio.sleep(_POLL_S)
        probe.state, probe.text = "failed", "The run did not come back."


def _newest_commands(connection: Connection, run_id: str) -> list[dict[str, Any]]:
    return command_log.list_commands(connection, run_id, limit=_MOST_COMMANDS)

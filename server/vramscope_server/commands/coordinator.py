"""Carries commands to the ranks and gathers their answers, across reconnects and restarts.

A command is committed to the store, with its line in the audit log, before any rank hears of it.
After that the coordinator only waits: for ranks to connect, for their answers, for the deadline.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection

from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import CONFLICT, FORBIDDEN, NOT_FOUND, VramscopeError
from vramscope_protocol.messages import CommandUpdate
from vramscope_server.auth.throttle import Throttle
from vramscope_server.commands.agreement import Agreement
from vramscope_server.commands.counterparts import CommandAudience, CommandCarrier, RunDirectory
from vramscope_server.commands.ledger import Ledger
from vramscope_server.commands.messenger import Messenger
from vramscope_server.commands.record import CommandRecord, RankAnswer, record_from_dict
from vramscope_server.commands.request import CommandRequest, Issuer, make_record
from vramscope_server.commands.room import check_room
from vramscope_server.commands.same_step import SameStep
from vramscope_server.commands.summary import sentence
from vramscope_server.commands.verdict import give_up, next_check_ns
from vramscope_server.settings import Limits
from vramscope_server.store import command_log
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.commands")

_POSTS_PER_S: Final = 1.0
_GONE: Final = {"ended": "has ended", "lost": "is lost"}
_MAX_CALLERS: Final = 1024


class Coordinator:
    """The commands of all runs. Lives on the event loop; only storing is awaited."""

    def __init__(
        self,
        store: Store,
        registry: RunDirectory,
        carrier: CommandCarrier,
        audience: CommandAudience,
        limits: Limits,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._registry = registry
        self._carrier = carrier
        self._audience = audience
        self._limits = limits
        self._clock_ns = clock_ns
        self._ledger = Ledger(store)
        self._messenger = Messenger(carrier, limits, clock_ns)
        self._same_step = SameStep(self._ledger, registry, carrier, limits, clock_ns, self._settle)
        self._throttle = Throttle("commands", limits.command_burst, _POSTS_PER_S, _MAX_CALLERS)
        self._accepting = asyncio.Lock()
        self._open: dict[str, CommandRecord] = {}
        self._recent: OrderedDict[str, CommandRecord] = OrderedDict()
        self._timers: dict[str, asyncio.TimerHandle] = {}

    async def start(self) -> None:
        """Take up the commands that were open when the server stopped."""
        self._ledger.start()
        if not self._store.is_sole:
            return  # they belong to the other server, which hears of their receipts
        give_up_from_ns = self._clock_ns() + int(self._limits.command_restart_s * 1e9)
        for command in await self._store.read(command_log.unfinished):
            record = record_from_dict(command["run"], command)
            # Whether a rank got it before the restart is not known: assume it did, and give it
            # time to reconnect and to send the receipt that it still holds.
            if record.agreement is None or record.agreement.at_step is not None:
                record.sent.update(record.ranks)
            record.not_before_ns = give_up_from_ns
            self._open[record.id] = record
            if record.agreement is not None:
                self._same_step.take_up(record)
            if record.is_final:  # answered while the server went down
                self._settle(record)
            else:
                self._schedule(record)

    async def stop(self) -> None:
        """Stop waiting; what is open is taken up again at the next start."""
        await self._same_step.stop()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await self._ledger.stop()

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> CommandRecord:
        """Accept a command and hand it to every rank that is connected.

        The same request with the same id is accepted once and answered as often as it comes.

        Raises:
            VramscopeError: ``not_found``, ``bad_request``, ``forbidden``, ``conflict``,
                ``rate_limited``, or ``internal`` if it could not be stored.
        """
        run_id, state = self._target(run)
        caller = issuer.principal.fingerprint or issuer.address
        self._throttle.check(caller)
        self._throttle.use(caller)
        try:
            record = make_record(
                request,
                state,
                partial(self._carrier.can_prepare, run_id),
                issuer,
                self._clock_ns(),
                self._limits.command_deadline_s,
            )
        except VramscopeError as error:
            if error.code == FORBIDDEN:
                await self._ledger.refuse(run_id, request, issuer, self._clock_ns(), error.message)
            raise
        # One at a time, so that an id that comes twice at once is looked up after it was stored.
        async with self._accepting:
            known = await self._known(record.id)
            if known is not None:
                return _same_or_conflict(known, record)
            self._check_room(record, state)
            if not await self._ledger.accept(record, issuer.address):
                raise VramscopeError(CONFLICT, f"the id {record.id} was taken at the same moment")
            self._open[record.id] = record
        if record.agreement is not None:
            self._same_step.begin(record)
        self._heed_gone_ranks(record, state)
        if record.agreement is None:
            for rank in record.open_ranks:
                self._messenger.send(record, rank)
        self._settle(record)
        return record

    async def find(self, run: str, command_id: str) -> dict[str, Any]:
        """One command of a run, receipts included.

        Raises:
            VramscopeError: ``not_found``.
        """
        run_id = self._registry.find(run)
        record = await self._known(command_id)
        if run_id is None or record is None or record.run_id != run_id:
            raise VramscopeError(NOT_FOUND, f"no command {command_id!r} in the run {run!r}")
        return record.as_dict()

    async def list(self, run_id: str, limit: int) -> list[dict[str, Any]]:
        """Commands of a run, newest first; what is not stored yet is shown as it is."""

        def read(connection: Connection) -> list[dict[str, Any]]:
            return command_log.list_commands(connection, run_id, limit=limit)

        records = [record_from_dict(run_id, stored) for stored in await self._store.read(read)]
        return [
            (self._open.get(record.id) or self._recent.get(record.id) or record).as_dict()
            for record in records
        ]

    def command_update(self, run_id: str, rank: int, update: CommandUpdate) -> None:
        """Take what a rank says about a command. Ingest has it stored already or soon will."""
        record = self._open.get(update.id) or self._recent.get(update.id)
        if record is None or record.run_id != run_id:
            _logger.info("rank %d of %s answered an unknown command %s", rank, run_id, update.id)
            return
        if record.agreement is not None:
            self._same_step.take(record, rank, update)
            if not _counts(record.agreement, update):
                return
        receipt = update.receipt or Receipt(update.state)
        answer = RankAnswer(update.state, update.time_ns, receipt, received_ns=self._clock_ns())
        if record.answer(rank, answer):
            self._settle(record)

    def rank_connected(self, run_id: str, rank: int) -> None:
        """Hand a rank everything that waits for it. What it had before, it runs only once."""
        # Of what is finished only what training may still stand still for.
        for record in (*self._open.values(), *self._recent.values()):
            if record.run_id != run_id or not record.awaits_word_of(rank):
                continue
            if record.agreement is not None:
                self._same_step.rank_connected(record, rank)
            elif rank in record.open_ranks:
                self._messenger.send(record, rank)

    def rank_disconnected(self, run_id: str, rank: int) -> None:
        """A rank that said goodbye will not answer any more; one that did not may come back."""
        run = self._registry.run(run_id)
        if run is None:
            return
        for record in tuple(self._open.values()):
            if record.run_id == run_id and rank in record.open_ranks:
                self._heed_gone_ranks(record, run)
                self._settle(record)

    def _target(self, run: str) -> tuple[str, dict[str, Any]]:
        run_id = self._registry.find(run)
        state = self._registry.run(run_id) if run_id is not None else None
        if run_id is None or state is None:
            raise VramscopeError(NOT_FOUND, f"no run with the id or the name {run!r}")
        return run_id, state

    def _check_room(self, record: CommandRecord, state: dict[str, Any]) -> None:
        if state["state"] == "ended":
            raise VramscopeError(CONFLICT, f"the run {state['name']!r} has ended")
        waiting = (each for each in self._open.values() if each.run_id == record.run_id)
        check_room(record, waiting, self._limits)

    async def _known(self, command_id: str) -> CommandRecord | None:
        record = self._open.get(command_id) or self._recent.get(command_id)
        if record is not None:
            return record

        def read(connection: Connection) -> dict[str, Any] | None:
            return command_log.get_command(connection, command_id)

        stored = await self._store.read(read)
        return None if stored is None else record_from_dict(stored["run"], stored)

    def _heed_gone_ranks(self, record: CommandRecord, run: dict[str, Any]) -> None:
        states = {rank["rank"]: rank["state"] for rank in run["ranks"]}
        for rank in record.open_ranks:
            state = states.get(rank)
            if record.agreement is not None:
                if state in _GONE:
                    self._same_step.rank_gone(record, rank, _GONE[state])
            elif state == "ended":
                message = f"Rank {rank} has ended. Nothing was changed."
                receipt = Receipt("refused", message=message, dry_run=record.dry_run)
                record.answer(rank, RankAnswer("refused", self._clock_ns(), receipt, True))

    def _settle(self, record: CommandRecord) -> None:
        """Store, tell and file a record whose answers have changed, and wait for the others."""
        self._ledger.note(record)
        self._audience.publish_command(record.run_id, record.as_dict())
        if record.is_final:
            self._file(record)
        if record.agreement is not None:
            self._same_step.settled(record)
        self._schedule(record)

    def _file(self, record: CommandRecord) -> None:
        text = sentence(record)
        if text != record.told:  # a late word of a rank may say the same as the server has
            record.told = text
            self._audience.publish_event(record.run_id, self._ledger.finish(record))
        self._open.pop(record.id, None)
        self._recent[record.id] = record
        self._recent.move_to_end(record.id)
        while len(self._recent) > self._limits.command_recent:
            self._recent.popitem(last=False)

    def _schedule(self, record: CommandRecord) -> None:
        timer = self._timers.pop(record.id, None)
        if timer is not None:
            timer.cancel()
        due_ns = next_check_ns(record, self._limits)
        if due_ns is not None:
            delay_s = max(0.0, (due_ns - self._clock_ns()) / 1e9)
            loop = asyncio.get_running_loop()
            self._timers[record.id] = loop.call_later(delay_s, self._check, record)

    def _check(self, record: CommandRecord) -> None:
        """Give up on the ranks whose time is over."""
        if give_up(record, self._clock_ns(), self._limits):
            self._settle(record)
        else:
            self._schedule(record)


def _counts(agreement: Agreement, update: CommandUpdate) -> bool:
    """Whether a word is one on the step that is asked for now, or a word for good."""
    if update.state == "prepared":
        return agreement.run is None and update.at_step == agreement.at_step
    return update.at_step is None


def _same_or_conflict(known: CommandRecord, wanted: CommandRecord) -> CommandRecord:
    if not known.same_request(wanted):
        raise VramscopeError(
            CONFLICT, f"the id {wanted.id} belongs to another command ({known.name}) already"
        )
    return known

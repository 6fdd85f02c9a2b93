"""What the store keeps of commands: state, the server's own receipts, timeline, audit log.

Receipts that agents send are not written here: ingest stores them with their sequence number, so
that each is stored exactly once. Everything else is brought to the store by one task, which writes
the present state of whatever has changed; a command that changes twice before it is written is
written once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection

from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.messages import CommandUpdate
from vramscope_server.commands.agreement import Agreement, agreement_from_dict
from vramscope_server.commands.record import CommandRecord, RankAnswer
from vramscope_server.commands.request import CommandRequest, Issuer
from vramscope_server.commands.summary import command_event, sentence
from vramscope_server.store import audit, command_log, events
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.commands")

_RETRY_S: Final = 1.0
_STOP_S: Final = 2.0


class Ledger:
    """Brings commands to the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._dirty: dict[str, CommandRecord] = {}
        self._events: dict[str, list[dict[str, Any]]] = {}
        self._results: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write what is noted."""
        self._task = asyncio.create_task(self._write_changes(), name="vramscope-ledger")

    async def stop(self) -> None:
        """Write what is noted, against a deadline, and end."""
        if self._task is None:
            return
        try:
            await asyncio.wait_for(self._idle.wait(), _STOP_S)
        except asyncio.TimeoutError:
            _logger.error("%d commands could not be stored before the end", len(self._dirty))
        self._task.cancel()
        await asyncio.wait({self._task})
        self._task = None

    async def accept(self, record: CommandRecord, address: str) -> bool:
        """Store a new command and its line in the audit log; False if the id is taken.

        Raises:
            VramscopeError: the store could not commit it.
        """
        row = _audit_row(record.as_row(), record.run_id, record.issued_by, address, "accepted")

        def insert(connection: Connection) -> bool:
            if not command_log.insert_command(connection, record.run_id, record.as_row()):
                return False
            audit.record(connection, row)
            return True

        return await self._store.write(insert)

    async def note_step(self, command_id: str, at_step: int) -> None:
        """Store the step that ranks are about to be asked for.

        Raises:
            VramscopeError: the store could not commit it.
        """
        await self._store.write(lambda c: command_log.set_step(c, command_id, at_step))

    async def decide(self, command_id: str, agreement: Agreement) -> Agreement:
        """Store a decision; the one that is stored then, which may be an earlier one.

        Raises:
            VramscopeError: the store could not commit it, or did not say in time whether it has.
        """
        wanted = agreement.as_dict()
        stored = await self._store.write(lambda c: command_log.decide(c, command_id, wanted))
        return agreement if stored is None else agreement_from_dict(stored)

    async def refuse(
        self, run_id: str, request: CommandRequest, issuer: Issuer, now_ns: int, why: str
    ) -> None:
        """Store that someone asked for a command without the right to it."""
        command = {
            "id": request.id or "",
            "name": request.name,
            "ranks": request.ranks,
            "dry_run": request.dry_run,
            "params": request.params or {},
            "origin": issuer.origin,
            "created_ns": now_ns,
        }
        row = _audit_row(command, run_id, issuer.principal.name, issuer.address, f"refused: {why}")
        await self._store.write(lambda connection: audit.record(connection, row))

    def note(self, record: CommandRecord) -> None:
        """A record has changed: write it soon."""
        self._dirty[record.id] = record
        self._idle.clear()
        self._changed.set()

    def finish(self, record: CommandRecord) -> dict[str, Any]:
        """A record has become final: write and return what the timeline shows of it.

        A late word of a rank can finish a command a second time; the timeline then says so.
        """
        event = command_event(record)
        self._events.setdefault(record.id, []).append(event)
        self._results[record.id] = f"{record.state}: {sentence(record)}"
        self.note(record)
        return event

    async def _write_changes(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._write_all()
            except VramscopeError as error:
                # Nothing noted is lost: it is written when the database is back.
                _logger.error("commands could not be stored: %s", error.message)
                self._changed.set()
                await asyncio.sleep(_RETRY_S)
            if not self._dirty:
                self._idle.set()

    async def _write_all(self) -> None:
        while self._dirty:
            command_id, record = next(iter(self._dirty.items()))
            del self._dirty[command_id]
            made_events = self._events.pop(command_id, [])
            result = self._results.pop(command_id, None)
            try:
                await self._store.write(_write(record, made_events, result))
            except VramscopeError:
                self._dirty.setdefault(command_id, record)
                self._events.setdefault(command_id, [])[:0] = made_events
                if result is not None:
                    self._results.setdefault(command_id, result)
                raise


def _write(
    record: CommandRecord, made_events: list[dict[str, Any]], result: str | None
) -> Callable[[Connection], None]:
    """The transaction that brings one command up to date.

    What it writes is copied out of the record now, on the event loop, because the record may
    change while the writer thread is at work.
    """
    command_id, run_id = record.id, record.run_id
    state, finished_ns = record.state, record.finished_ns
    made = {rank: answer for rank, answer in record.answers.items() if answer.by_server}
    late = {rank: answer for rank, answer in record.answers.items() if answer.overrules}

    def write(connection: Connection) -> None:
        command_log.set_state(connection, command_id, state, finished_ns)
        for rank, answer in made.items():
            command_log.set_receipt(connection, run_id, rank, _update(command_id, answer))
        for rank, answer in late.items():
            command_log.replace_receipt(connection, run_id, rank, _update(command_id, answer))
        for event in made_events:
            events.add_event(connection, run_id, **event)
        if result is not None:
            audit.set_result(connection, command_id, result)

    return write


def _update(command_id: str, answer: RankAnswer) -> CommandUpdate:
    return CommandUpdate(0, command_id, answer.state, answer.time_ns, answer.receipt)


def _audit_row(
    command: dict[str, Any], run_id: str, who: str, address: str, result: str
) -> dict[str, Any]:
    return {
        "time_ns": command["created_ns"],
        "who": who,
        "origin": command["origin"],
        "address": address,
        "run": run_id,
        "command_id": command["id"],
        "name": command["name"],
        "ranks": command["ranks"],
        "dry_run": command["dry_run"],
        "params": command["params"],
        "result": result,
    }

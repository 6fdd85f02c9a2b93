"""The policies of a database: made, changed, switched and deleted by people, each time audited.

Several servers may share the database: what is changed at one is taken up by the others.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from vramscope_protocol.errors import CONFLICT, INTERNAL, NOT_FOUND, VramscopeError
from vramscope_server.commands.request import Origin
from vramscope_server.policies.checks import check_definition
from vramscope_server.policies.definition import Definition, read_definition
from vramscope_server.policies.record import PolicyRecord
from vramscope_server.store import audit, policies
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.policies")

MOST_POLICIES: Final = 64
SERVER: Final = "vramscope"
"""Who switches a policy off that fails."""


@dataclass(frozen=True)
class Author:
    """Who changes a policy, by which way, and from where."""

    name: str
    origin: Origin
    address: str


class PolicyBook:
    """All policies, in memory and in the store. Lives on the event loop; only storing waits."""

    def __init__(self, store: Store, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._store = store
        self._clock_ns = clock_ns
        self._records: dict[str, PolicyRecord] = {}
        self._changing = asyncio.Lock()
        """One change at a time: what is stored last is what holds here, too."""
        self._mark: policies.Mark | None = None
        """Of what the store had when it was looked at last; none: it was changed from here."""
        self.version = 0
        """Another number whenever a policy was made, changed, switched or deleted."""

    async def start(self) -> None:
        """Load what the store has.

        Raises:
            VramscopeError: ``internal``: the store cannot be read.
        """
        await self.refresh()

    async def refresh(self) -> None:
        """Take up what another server has changed; a policy that is as it was stays the same one.

        Raises:
            VramscopeError: ``internal``: the store cannot be read now.
        """
        async with self._changing:
            await self._take_up()

    def all(self) -> list[PolicyRecord]:
        """Every policy, oldest first."""
        return list(self._records.values())

    def find(self, policy_id: str) -> PolicyRecord | None:
        """One policy, if it is still there."""
        return self._records.get(policy_id)

    def get(self, policy_id: str) -> PolicyRecord:
        """One policy.

        Raises:
            VramscopeError: ``not_found``.
        """
        record = self._records.get(policy_id)
        if record is None:
            raise VramscopeError(NOT_FOUND, f"no policy with the id {policy_id[:80]!r}")
        return record

    async def create(self, body: object, author: Author) -> PolicyRecord:
        """Make a policy.

        Raises:
            VramscopeError: ``bad_request``, ``conflict``, or ``internal`` if it was not stored.
        """
        async with self._changing:
            await self._take_up()
            definition, is_on = self._read(body, None)
            if len(self._records) >= MOST_POLICIES:
                raise VramscopeError(
                    CONFLICT, f"expected at most {MOST_POLICIES} policies; delete one of them first"
                )
            now_ns = self._clock_ns()
            record = PolicyRecord(
                uuid.uuid4().hex[:16], definition, is_on, now_ns, author.name, now_ns, author.name
            )
            await self._store_one(record, author, "policy_create")
            self._records[record.id] = record
            self.version += 1
            return record

    async def change(self, policy_id: str, body: object, author: Author) -> PolicyRecord:
        """Put another policy in the place of one, which begins anew.

        Raises:
            VramscopeError: as :meth:`create`, or ``not_found``.
        """
        async with self._changing:
            await self._take_up()
            record = self.get(policy_id)
            definition, is_on = self._read(body, policy_id)
            return await self._become(record, definition, author, "policy_change", is_on=is_on)

    async def switch(self, policy_id: str, is_on: bool, author: Author) -> PolicyRecord:
        """Switch a policy on or off.

        Raises:
            VramscopeError: ``not_found``, or ``internal`` if it was not stored.
        """
        name = "policy_on" if is_on else "policy_off"
        async with self._changing:
            await self._take_up()
            record = self.get(policy_id)
            return await self._become(record, record.definition, author, name, is_on=is_on)

    async def delete(self, policy_id: str, author: Author) -> None:
        """Delete a policy; what it has begun goes on.

        Raises:
            VramscopeError: ``not_found``, or ``internal`` if it was not stored.
        """
        async with self._changing:
            await self._take_up()
            record = self.get(policy_id)
            row = self._audit_row(record, author, "policy_delete", "done")

            def delete(connection: Connection) -> None:
                policies.delete(connection, policy_id)
                audit.record(connection, row)

            await self._store.write(delete)
            self._mark = None
            del self._records[policy_id]
            self.version += 1

    async def give_up(self, record: PolicyRecord, reason: str) -> None:
        """Switch a policy off that does nothing but fail."""
        async with self._changing:
            if self._records.get(record.id) is not record:
                return  # it was changed or deleted meanwhile, and began anew
            record.is_on, record.off_reason = False, reason
            self.version += 1
            author = Author(SERVER, "server", "")
            await self._store_one(record, author, "policy_off", reason)

    async def keep(self, record: PolicyRecord) -> None:
        """Store how often it acted and failed, unless it was changed or deleted meanwhile."""
        if self._records.get(record.id) is record:
            counts = (record.id, record.fired, record.failures)
            await self._store.write(lambda c: policies.set_counts(c, *counts))

    async def _take_up(self) -> None:
        """Look at the store; a change is being made, or none may be made meanwhile."""
        try:
            mark = await self._store.read(policies.mark)
            if mark == self._mark:
                return
            stored = await self._store.read(policies.list_policies)
        except SQLAlchemyError as error:
            _logger.error("policies cannot be read: %s", error)
            raise VramscopeError(INTERNAL, "the database cannot be read now") from None
        self._mark = mark
        records = {record.id: self._known_or(record) for record in stored}
        if list(records.values()) != list(self._records.values()) or self.version == 0:
            self.version += 1
        self._records = records

    def _known_or(self, stored: PolicyRecord) -> PolicyRecord:
        """The record that is watched already, if nobody has changed it since."""
        known = self._records.get(stored.id)
        if known is None or not known.is_same_as(stored):
            return stored
        # It may have acted at another server: how often it may is for all of them together.
        known.fired = max(known.fired, stored.fired)
        for run_id, fired_ns in stored.last_fired_ns.items():
            known.last_fired_ns[run_id] = max(fired_ns, known.last_fired_ns.get(run_id, 0))
        return known

    def _read(self, body: object, policy_id: str | None) -> tuple[Definition, bool]:
        definition, is_on = read_definition(body)
        check_definition(definition)
        for other in self._records.values():
            # Its name is who asks, in the audit log.
            if other.id != policy_id and other.definition.name == definition.name:
                raise VramscopeError(CONFLICT, f"there is a policy named {definition.name!r}")
        return definition, is_on

    async def _become(
        self,
        record: PolicyRecord,
        definition: Definition,
        author: Author,
        name: str,
        *,
        is_on: bool,
    ) -> PolicyRecord:
        changed = PolicyRecord(
            record.id,
            definition,
            is_on,
            record.created_ns,
            record.created_by,
            self._clock_ns(),
            author.name,
            fired=record.fired,
            last_fired_ns=record.last_fired_ns,
        )
        await self._store_one(changed, author, name)
        self._records[record.id] = changed
        self.version += 1
        return changed

    async def _store_one(
        self, record: PolicyRecord, author: Author, name: str, result: str = "done"
    ) -> None:
        row = self._audit_row(record, author, name, result)

        def write(connection: Connection) -> None:
            policies.put(connection, record)
            audit.record(connection, row)

        await self._store.write(write)
        self._mark = None

    def _audit_row(
        self, record: PolicyRecord, author: Author, name: str, result: str
    ) -> dict[str, Any]:
        return {
            "time_ns": self._clock_ns(),
            "who": author.name,
            "origin": author.origin,
            "address": author.address,
            "run": record.definition.run or "",
            "command_id": audit_id(record.id),
            "name": name,
            "ranks": [],
            "dry_run": False,
            "params": {**record.definition.as_dict(), "is_on": record.is_on},
            "result": result,
        }


def audit_id(policy_id: str) -> str:
    """What stands for a policy where the audit log has the id of a command: none has a colon."""
    return f"policy:{policy_id}"

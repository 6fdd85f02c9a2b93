"""Policies, and the times that they acted or would have."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import msgspec
from sqlalchemy import ColumnElement, Connection, case, func, insert, select, update
from sqlalchemy import delete as delete_from

from vramscope_protocol.errors import VramscopeError
from vramscope_server.policies.definition import Definition, Mode, read_definition
from vramscope_server.policies.record import Firing, FiringState, PolicyRecord
from vramscope_server.store import tables
from vramscope_server.store.upsert import upsert

_logger = logging.getLogger("vramscope.policies")

KEPT_FIRINGS: Final = 200
"""Of each policy; the audit log has all of them."""

_policies: Final = tables.policies
_firings: Final = tables.policy_firings
_commands: Final = tables.commands


@dataclass(frozen=True)
class WaitingFiring:
    """A firing whose command was under way, and how that command is by now: None, it never was."""

    firing: Firing
    command_state: str | None


class Mark(NamedTuple):
    """What of all policies is another one whenever any server has changed one, or let it act."""

    made: int
    changed_ns: int
    on: int
    fired: int


def mark(connection: Connection) -> Mark:
    """How things are with all policies; asked once a second."""
    is_on = func.sum(case((_policies.c.is_on, 1), else_=0))
    columns = (
        func.count(),
        func.max(_policies.c.changed_ns),
        is_on,
        func.sum(_policies.c.fired),
    )
    row = connection.execute(select(*columns).select_from(_policies)).one()
    return Mark(*(int(value or 0) for value in row))


def put(connection: Connection, record: PolicyRecord) -> None:
    """Store a policy as it is now."""
    row = {
        "id": record.id,
        "definition": msgspec.json.encode(record.definition.as_dict()).decode(),
        "is_on": record.is_on,
        "off_reason": record.off_reason,
        "failures": record.failures,
        "fired": record.fired,
        "created_ns": record.created_ns,
        "created_by": record.created_by,
        "changed_ns": record.changed_ns,
        "changed_by": record.changed_by,
    }
    upsert(connection, _policies, [row], keys=("id",))


def set_counts(connection: Connection, policy_id: str, fired: int, failures: int) -> None:
    """Say how often a policy acted and failed; what it says may be changed at the same moment."""
    change = update(_policies).where(_policies.c.id == policy_id)
    connection.execute(change.values(fired=fired, failures=failures))


def delete(connection: Connection, policy_id: str) -> None:
    """Forget a policy and what it did."""
    connection.execute(delete_from(_firings).where(_firings.c.policy_id == policy_id))
    connection.execute(delete_from(_policies).where(_policies.c.id == policy_id))


def list_policies(connection: Connection) -> list[PolicyRecord]:
    """All policies, oldest first, with when they acted last in each run."""
    last: dict[str, dict[str, int]] = {}
    newest = select(
        _firings.c.policy_id, _firings.c.run_id, func.max(_firings.c.time_ns).label("time_ns")
    ).group_by(_firings.c.policy_id, _firings.c.run_id)
    for row in connection.execute(newest):
        last.setdefault(row.policy_id, {})[row.run_id] = row.time_ns
    order = (_policies.c.created_ns, _policies.c.id)
    found: list[PolicyRecord] = []
    for row in connection.execute(select(_policies).order_by(*order)):
        try:
            definition, _is_on = read_definition(msgspec.json.decode(row.definition))
        except VramscopeError as error:  # of a newer version: the others still hold
            _logger.error("the policy %s cannot be read and does nothing: %s", row.id, error)
            continue
        found.append(_record(row, definition, last.get(row.id, {})))
    return found


def add_firing(connection: Connection, firing: Firing) -> int:
    """Store a firing, and forget the oldest ones of its policy; its number."""
    values = {
        "policy_id": firing.policy_id,
        "run_id": firing.run_id,
        "run_name": firing.run_name,
        "time_ns": firing.time_ns,
        "mode": firing.mode,
        "ranks": msgspec.json.encode(firing.ranks).decode(),
        "why": firing.why,
        "command": firing.command,
        "params": msgspec.json.encode(firing.params).decode(),
        "command_id": firing.command_id,
        "state": firing.state,
        "result": firing.result,
    }
    number: int = connection.execute(
        insert(_firings).values(**values).returning(_firings.c.id)
    ).scalar_one()
    of_policy = _firings.c.policy_id == firing.policy_id
    kept = select(_firings.c.id).where(of_policy).order_by(_firings.c.id.desc())
    oldest = connection.scalar(kept.offset(KEPT_FIRINGS - 1).limit(1))
    if oldest is not None:
        connection.execute(delete_from(_firings).where(of_policy, _firings.c.id < oldest))
    return number


def set_outcome(connection: Connection, number: int, state: FiringState, result: str) -> None:
    """Say what came of a firing."""
    change = update(_firings).where(_firings.c.id == number)
    connection.execute(change.values(state=state, result=result))


def list_firings(connection: Connection, policy_id: str, limit: int) -> list[Firing]:
    """The newest firings of a policy, newest first."""
    return _load(connection, _firings.c.policy_id == policy_id, limit)


def list_waiting(connection: Connection, limit: int = 10_000) -> list[WaitingFiring]:
    """Firings whose end is not known, for a server that starts again."""
    waiting = _load(connection, _firings.c.state == "waiting", limit)
    ids = [firing.command_id for firing in waiting]
    rows = connection.execute(
        select(_commands.c.id, _commands.c.state).where(_commands.c.id.in_(ids))
    )
    states: dict[str, str] = {row.id: row.state for row in rows}
    return [WaitingFiring(firing, states.get(firing.command_id or "")) for firing in waiting]


def _record(row: Any, definition: Definition, last_ns: dict[str, int]) -> PolicyRecord:
    return PolicyRecord(
        id=row.id,
        definition=definition,
        is_on=row.is_on,
        created_ns=row.created_ns,
        created_by=row.created_by,
        changed_ns=row.changed_ns,
        changed_by=row.changed_by,
        off_reason=row.off_reason,
        failures=row.failures,
        fired=row.fired,
        last_fired_ns=last_ns,
    )


def _load(connection: Connection, condition: ColumnElement[bool], limit: int) -> list[Firing]:
    query = select(_firings).where(condition).order_by(_firings.c.id.desc()).limit(limit)
    return [_firing(row) for row in connection.execute(query)]


def _firing(row: Any) -> Firing:
    return Firing(
        policy_id=row.policy_id,
        run_id=row.run_id,
        run_name=row.run_name,
        time_ns=row.time_ns,
        mode=cast(Mode, row.mode),
        ranks=msgspec.json.decode(row.ranks, type=list[int]),
        why=row.why,
        command=row.command,
        params=msgspec.json.decode(row.params),
        command_id=row.command_id,
        state=cast(FiringState, row.state),
        result=row.result,
        number=row.id,
    )

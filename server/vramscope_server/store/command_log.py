"""Commands and their receipts, one receipt a rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update

from vramscope_protocol.commands import FINAL_STATES
from vramscope_protocol.messages import CommandUpdate
from vramscope_server.store import tables
from vramscope_server.store.commit import receipt_row, write_receipts
from vramscope_server.store.upsert import upsert

MAX_ANSWER_BYTES: Final = 16 << 20

_commands = tables.commands


def insert_command(connection: Connection, run_id: str, command: dict[str, Any]) -> bool:
    """Store a new command; ``False``, and nothing stored, if its id exists."""
    known = connection.scalar(select(_commands.c.id).where(_commands.c.id == command["id"]))
    if known is not None:
        return False
    connection.execute(
        insert(_commands).values(
            id=command["id"],
            run_id=run_id,
            name=command["name"],
            params=msgspec.json.encode(command["params"]).decode(),
            dry_run=command["dry_run"],
            ranks=msgspec.json.encode(command["ranks"]).decode(),
            state=command["state"],
            issued_by=command["issued_by"],
            origin=command["origin"],
            created_ns=command["created_ns"],
            deadline_ns=command["deadline_ns"],
            finished_ns=command.get("finished_ns"),
            note=command.get("note", ""),
            together=command.get("agreement") is not None,
            decision_reason="",
        )
    )
    return True


def set_step(connection: Connection, command_id: str, at_step: int) -> None:
    """The ranks are about to be asked to prepare a command for this step."""
    connection.execute(
        update(_commands)
        .where(_commands.c.id == command_id, _commands.c.decision.is_(None))
        .values(at_step=at_step)
    )


def decide(
    connection: Connection, command_id: str, agreement: dict[str, Any]
) -> dict[str, Any] | None:
    """Store what becomes of a command that was prepared, once: the decision that is stored then,
    this one or an earlier one. ``None`` if there is no such command."""
    connection.execute(
        update(_commands)
        .where(_commands.c.id == command_id, _commands.c.decision.is_(None))
        .values(
            at_step=agreement["at_step"],
            decision=agreement["decision"],
            decision_reason=agreement["reason"],
            decided_ns=agreement["decided_ns"],
        )
    )
    row = connection.execute(select(_commands).where(_commands.c.id == command_id)).one_or_none()
    return None if row is None else _agreement(row)


def set_state(
    connection: Connection, command_id: str, state: str, finished_ns: int | None = None
) -> None:
    """Move a command as a whole to another state."""
    connection.execute(
        update(_commands)
        .where(_commands.c.id == command_id)
        .values(state=state, finished_ns=finished_ns)
    )


def set_receipt(connection: Connection, run_id: str, rank: int, item: CommandUpdate) -> None:
    """Store a receipt that the server makes itself; one that is final stays what it is."""
    write_receipts(connection, [receipt_row(run_id, rank, item)])


def replace_receipt(connection: Connection, run_id: str, rank: int, item: CommandUpdate) -> None:
    """Put a rank's own word in the place of a receipt that the server made for it."""
    upsert(
        connection,
        tables.receipts,
        [receipt_row(run_id, rank, item)],
        keys=("command_id", "rank", "run_id"),
    )


def get_command(connection: Connection, command_id: str) -> dict[str, Any] | None:
    """One command with its receipts, and its run under ``run``."""
    found = _load(connection, _commands.c.id == command_id, 1)
    return found[0] if found else None


def list_commands(connection: Connection, run_id: str, limit: int = 200) -> list[dict[str, Any]]:
    """The newest commands of a run with their receipts, newest first; fewer when they hold much."""
    return _load(connection, _commands.c.run_id == run_id, limit, is_answer=True)


def unfinished(connection: Connection, limit: int = 1000) -> list[dict[str, Any]]:
    """Commands that are in no final state: for a server that starts again."""
    return _load(connection, _commands.c.state.not_in(sorted(FINAL_STATES)), limit)


def _load(
    connection: Connection, condition: ColumnElement[bool], limit: int, *, is_answer: bool = False
) -> list[dict[str, Any]]:
    rows = connection.execute(
        select(_commands)
        .where(condition)
        .order_by(_commands.c.created_ns.desc(), _commands.c.id)
        .limit(limit)
    ).all()
    if is_answer:
        rows = rows[: _answered(connection, [row.id for row in rows])]
    receipts = _receipts(connection, [(row.id, row.run_id) for row in rows])
    return [
        {
            "id": row.id,
            "run": row.run_id,
            "name": row.name,
            "params": msgspec.json.decode(row.params),
            "dry_run": row.dry_run,
            "ranks": msgspec.json.decode(row.ranks),
            "state": row.state,
            "issued_by": row.issued_by,
            "origin": row.origin,
            "created_ns": row.created_ns,
            "deadline_ns": row.deadline_ns,
            "finished_ns": row.finished_ns,
            "note": row.note,
            "agreement": _agreement(row) if row.together else None,
            "receipts": receipts.get((row.id, row.run_id), {}),
        }
        for row in rows
    ]


def _agreement(row: Row[Any]) -> dict[str, Any]:
    return {
        "at_step": row.at_step,
        "decision": row.decision,
        "reason": row.decision_reason,
        "decided_ns": row.decided_ns,
    }


def _answered(connection: Connection, ids: Sequence[str]) -> int:
    """How many of these commands fit into one answer: a receipt may be as large as a message."""
    table = tables.receipts
    found = connection.execute(
        select(table.c.command_id, func.sum(func.length(table.c.receipt)).label("size_bytes"))
        .where(table.c.command_id.in_(ids))
        .group_by(table.c.command_id)
    ).all()
    sizes: dict[str, int] = {row.command_id: row.size_bytes for row in found}
    left_bytes = MAX_ANSWER_BYTES
    for count, command_id in enumerate(ids):
        left_bytes -= sizes.get(command_id, 0)
        if left_bytes < 0 and count:
            return count
    return len(ids)


def _receipts(
    connection: Connection, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Receipts by command and run: an agent's word counts only for commands of its own run."""
    table = tables.receipts
    found: dict[tuple[str, str], dict[str, Any]] = {}
    ids = [command_id for command_id, _ in keys]
    for row in connection.execute(
        select(table).where(table.c.command_id.in_(ids)).order_by(table.c.rank)
    ):
        receipt: dict[str, Any] = {
            "step": None,
            "before": {},
            "after": {},
            "returned_bytes": None,
            "took_s": None,
            "message": "",
            "result": None,
            "dry_run": False,
        }
        receipt |= msgspec.json.decode(row.receipt)
        receipt |= {"state": row.state, "time_ns": row.time_ns}
        found.setdefault((row.command_id, row.run_id), {})[str(row.rank)] = receipt
    return found

"""A finished command in one sentence, for the timeline and the audit log."""

from __future__ import annotations

from typing import Any, Final

from vramscope_server.commands.record import CommandRecord

_UNITS: Final = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def returned_bytes(record: CommandRecord) -> int | None:
    """Bytes that all ranks together returned; None if no rank measured it."""
    measured = [
        answer.receipt.returned_bytes
        for answer in record.answers.values()
        if answer.receipt.returned_bytes is not None
    ]
    return sum(measured) if measured else None


def command_event(record: CommandRecord) -> dict[str, Any]:
    """The event that marks the command on the timeline."""
    steps = [
        answer.receipt.step for answer in record.answers.values() if answer.receipt.step is not None
    ]
    return {
        "time_ns": record.finished_ns or record.created_ns,
        # A command of several ranks belongs to the run as a whole.
        "rank": record.ranks[0] if len(record.ranks) == 1 else None,
        "step": max(steps, default=None),
        "kind": "command",
        "text": sentence(record),
        "data": {
            "command_id": record.id,
            "name": record.name,
            "dry_run": record.dry_run,
            "state": record.state,
            "ranks": record.ranks,
            "returned_bytes": returned_bytes(record),
        },
    }


def sentence(record: CommandRecord) -> str:
    """What came of the command: "empty_cache returned 1.2 GiB on rank 0"."""
    name = f"{record.name} (dry run)" if record.dry_run else record.name
    where = (
        f"on rank {record.ranks[0]}" if len(record.ranks) == 1 else f"on {len(record.ranks)} ranks"
    )
    if record.state != "done":
        # Ranks mostly fail alike: the first reason stands for the others, the receipts have all.
        reasons = [
            answer.receipt.message
            for _rank, answer in sorted(record.answers.items())
            if answer.state == record.state and answer.receipt.message
        ]
        text = f"{name} {record.state} {where}"
        return f"{text}: {reasons[0]}" if reasons else text
    returned = returned_bytes(record)
    if returned is None:
        return f"{name} done {where}"
    verb = "would return" if record.dry_run else "returned"
    return f"{name} {verb} {format_bytes(returned)} {where}"


def format_bytes(size_bytes: int) -> str:
    """Size in powers of two, one decimal; below 1 KiB in bytes."""
    for unit, unit_bytes in _UNITS:
        if size_bytes >= unit_bytes:
            return f"{size_bytes / unit_bytes:.1f} {unit}"
    return f"{size_bytes} bytes"

"""What travels to the browsers: the payload of each kind of event, as JSON bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vramscope_protocol.live import encode_event_payload
from vramscope_protocol.series import STEP, TIME_NS
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.rows import Rows, json_values


def runs_payload(runs: list[dict[str, Any]]) -> bytes:
    """The list of runs."""
    return encode_event_payload({"kind": "runs", "runs": runs})


def run_payload(run: dict[str, Any]) -> bytes:
    """One run with its ranks."""
    return encode_event_payload({"kind": "run", "run": run})


def samples_payload(rank: int, rows: Rows, fields: Sequence[str]) -> bytes:
    """Rows of samples, reduced to the fields that are followed; unknown fields are left out."""
    columns = {STEP: json_values(rows.step), **_columns(rows, fields)}
    return encode_event_payload(
        {
            "kind": "samples",
            "rank": rank,
            "time_ns": json_values(rows.time_ns),
            "columns": columns,
        }
    )


def steps_payload(rank: int, rows: Rows, fields: Sequence[str], *, life: LifeOffset) -> bytes:
    """Rows of steps, reduced to the fields that are followed; unknown fields are left out."""
    return encode_event_payload(
        {
            "kind": "steps",
            "rank": rank,
            "life": life.life,
            "step_offset": life.step_offset,
            "step": json_values(rows.step),
            "time_ns": json_values(rows.time_ns),
            "columns": _columns(rows, fields),
        }
    )


def event_payload(event: dict[str, Any]) -> bytes:
    """Something that happened once."""
    return encode_event_payload({"kind": "event", "event": event})


def command_payload(command: dict[str, Any]) -> bytes:
    """A command with the receipts that have come so far."""
    return encode_event_payload({"kind": "command", "command": command})


def snapshot_payload(snapshot: dict[str, Any]) -> bytes:
    """A snapshot as the API shows it; one that was deleted says so in its state."""
    return encode_event_payload({"kind": "snapshot", "snapshot": snapshot})


def oom_payload(oom: dict[str, Any]) -> bytes:
    """A time out of memory as the list has it."""
    return encode_event_payload({"kind": "oom", "oom": oom})


def status_payload(rank: int, status: dict[str, Any]) -> bytes:
    """What watching costs on one rank."""
    return encode_event_payload({"kind": "status", "rank": rank, "status": status})


def finding_payload(finding: dict[str, Any]) -> bytes:
    """A finding as it is now."""
    return encode_event_payload({"kind": "finding", "finding": finding})


def _columns(rows: Rows, fields: Sequence[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for name in fields:
        column = None if name in {STEP, TIME_NS} else rows.column(name)
        if column is not None:
            columns[name] = json_values(column)
    return columns

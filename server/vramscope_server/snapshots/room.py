"""How much room snapshots may take, and what makes way for a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from vramscope_server.settings import Limits
from vramscope_server.store import snapshots

IsConnected = Callable[[str], bool]
"""Whether a stream is there, by its uid."""


def why_no_room(
    connection: Connection, run_id: str | None, wire_bytes: int, limits: Limits
) -> str | None:
    """Why there is no room for one more snapshot; ``None`` if there is."""
    total_bytes = snapshots.held_bytes(connection) + wire_bytes
    if total_bytes > limits.snapshot_total_bytes:
        return _full("all snapshots", limits.snapshot_total_bytes)
    if snapshots.count(connection, run_id) >= limits.snapshot_run_count:
        return f"no room: a run may have {limits.snapshot_run_count} snapshots; delete some first"
    if run_id is None:
        return None
    run_bytes = snapshots.held_bytes(connection, run_id) + wire_bytes
    if run_bytes > limits.snapshot_run_bytes:
        return _full("the snapshots of one run", limits.snapshot_run_bytes)
    return None


def is_abandoned(snapshot: dict[str, Any], is_connected: IsConnected) -> bool:
    """Whether nobody is there to send the rest of it."""
    stream: str | None = snapshot["stream"]
    is_coming = snapshot["state"] == snapshots.RECEIVING
    return is_coming and (stream is None or not is_connected(stream))


def make_room(
    connection: Connection,
    run_id: str | None,
    wire_bytes: int,
    limits: Limits,
    is_connected: IsConnected,
) -> tuple[str | None, list[dict[str, Any]]]:
    """Forget snapshots that will never be complete, the oldest first, while room is lacking.

    Returns:
        Why there is no room all the same, and what was forgotten.
    """
    forgotten: list[dict[str, Any]] = []
    reason = why_no_room(connection, run_id, wire_bytes, limits)
    if reason is None:
        return None, forgotten
    for snapshot in snapshots.unfinished(connection):
        # A failed one holds no bytes, but counts among those of its run.
        is_failed = snapshot["state"] == snapshots.FAILED and snapshot["run"] == run_id
        if is_failed or is_abandoned(snapshot, is_connected):
            snapshots.remove(connection, snapshot["id"])
            forgotten.append(snapshot)
            reason = why_no_room(connection, run_id, wire_bytes, limits)
            if reason is None:
                break
    return reason, forgotten


def _full(what: str, limit_bytes: int) -> str:
    return f"no room: {what} may take {limit_bytes / (1 << 20):.0f} MiB; delete some first"

"""What the types cannot say about an agent's messages, checked before anything is stored.

A number that a database cannot hold or text that JSON cannot say would make the commit of every
stream fail, so it ends the connection that sent it. Pure.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from vramscope_protocol.errors import BAD_MESSAGE, ProtocolError
from vramscope_protocol.messages import (
    AgentStatus,
    BatchKind,
    CommandUpdate,
    Event,
    Goodbye,
    Lost,
    OomBegin,
    Register,
    SnapshotBegin,
    SnapshotChunk,
)
from vramscope_server.rows import Rows

INT64_MAX: Final = 2**63 - 1
MAX_RANK: Final = 1_000_000
MAX_DEVICES: Final = 64
MAX_NAME_LENGTH: Final = 512
_MAX_REASONS: Final = 64
_MAX_PLACES: Final = 256
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def check_register(message: Register) -> None:
    """Check who registers.

    Raises:
        ProtocolError: ``bad_message``.
    """
    _check_id("stream", message.stream)
    _check_id("run.id", message.run.id)
    _check_text("run.name", message.run.name)
    if not message.run.name:
        raise ProtocolError(BAD_MESSAGE, "expected a run.name, got an empty one")
    _check_text("run.user", message.run.user)
    _check_text("run.script", message.run.script)
    _check_text("rank.host", message.rank.host)
    _check_range("rank.rank", message.rank.rank, 0, MAX_RANK)
    _check_range("run.world_size", message.run.world_size, 1, MAX_RANK)
    _check_range("rank.pid", message.rank.pid, 0, INT64_MAX)
    _check_range("rank.started_ns", message.rank.started_ns, 0, INT64_MAX)
    _check_range("rank.process_started_ns", message.rank.process_started_ns, 0, INT64_MAX)
    _check_text("rank.life", message.rank.life)
    _check_text("rank.launcher", message.rank.launcher)
    _check_text("rank.job", message.rank.job)
    _check_range("devices", len(message.rank.devices), 0, MAX_DEVICES)
    for command in message.rank.user_commands:
        _check_text("name of a command", command.name)
    for device in message.rank.devices:
        _check_text("device.name", device.name)
        for size in (device.total_bytes, device.limit_bytes):
            _check_range("device size", size or 0, 0, INT64_MAX)


class StreamChecks:
    """Checks of one connection's durable messages; remembers the newest time of each kind."""

    def __init__(self) -> None:
        self._newest_ns: dict[BatchKind, int] = {"sample": 0, "step": 0}

    def check_rows(self, rows: Rows) -> None:
        """Check that time does not go backwards: chunks and rollups are made by time.

        Raises:
            ProtocolError: ``bad_message``.
        """
        times = rows.time_ns
        if int(times[0]) < self._newest_ns[rows.kind] or (times[1:] < times[:-1]).any():
            raise ProtocolError(
                BAD_MESSAGE, f"expected {rows.kind} rows with times that do not go backwards"
            )
        self._newest_ns[rows.kind] = int(times[-1])
        _check_range("first_index", rows.first_index, 0, INT64_MAX - len(rows))

    def check_message(self, message: Event | CommandUpdate | Goodbye) -> int:
        """Check numbers and free data; about how many bytes the free data holds.

        Raises:
            ProtocolError: ``bad_message``.
        """
        _check_range("time_ns", message.time_ns, 0, INT64_MAX)
        if isinstance(message, Event):
            _check_range("step", message.step or 0, -INT64_MAX, INT64_MAX)
            _check_text("kind", message.kind)
            if not message.kind:
                raise ProtocolError(BAD_MESSAGE, "expected the kind of an event, got none")
            _check_nul(message.text)
            return len(message.text) + _check_json("data", message.data)
        if isinstance(message, CommandUpdate):
            _check_id("id", message.id)
            return _check_json("receipt", message.receipt)
        _check_range("exit_code", message.exit_code or 0, -INT64_MAX, INT64_MAX)
        _check_nul(message.text)
        return len(message.text)


def check_seq(seq: int) -> None:
    """Check a sequence number.

    Raises:
        ProtocolError: ``bad_message``.
    """
    _check_range("seq", seq, 1, INT64_MAX)


def check_snapshot(message: SnapshotBegin | SnapshotChunk) -> None:
    """Check a piece of a snapshot, or what is said of one.

    Raises:
        ProtocolError: ``bad_message``.
    """
    _check_id("id", message.id)
    if isinstance(message, SnapshotChunk):
        _check_range("offset", message.offset, 0, INT64_MAX - len(message.data))
        return
    _check_range("time_ns", message.time_ns, 0, INT64_MAX)
    _check_range("step", message.step or 0, -INT64_MAX, INT64_MAX)
    _check_range("device", message.device, 0, INT64_MAX)
    _check_range("raw_bytes", message.raw_bytes, 1, INT64_MAX)
    _check_range("wire_bytes", message.wire_bytes, 1, INT64_MAX)
    _check_text("issued_by", message.issued_by)
    if not _SHA256.fullmatch(message.sha256):
        raise ProtocolError(BAD_MESSAGE, "expected sha256 as 64 hexadecimal digits")


def check_oom(message: OomBegin) -> None:
    """Check what is said of a report of running out of memory.

    Raises:
        ProtocolError: ``bad_message``.
    """
    _check_id("id", message.id)
    _check_id("run", message.run)
    if message.linked_to:
        _check_id("linked_to", message.linked_to)
    _check_range("rank", message.rank, 0, MAX_RANK)
    _check_range("time_ns", message.time_ns, 0, INT64_MAX)
    _check_range("step", message.step or 0, -INT64_MAX, INT64_MAX)
    _check_range("wire_bytes", message.wire_bytes, 1, INT64_MAX)
    if not _SHA256.fullmatch(message.sha256):
        raise ProtocolError(BAD_MESSAGE, "expected sha256 as 64 hexadecimal digits")


def check_lost(message: Lost) -> int:
    """Check loss totals; about how many bytes they hold.

    Raises:
        ProtocolError: ``bad_message``.
    """
    for totals in (message.samples, message.steps, message.messages):
        _check_range("reasons", len(totals), 0, _MAX_REASONS)
        for reason, count in totals.items():
            _check_text("reason", reason)
            _check_range("count", count, 0, INT64_MAX)
    return sum(
        len(reason)
        for totals in (message.samples, message.steps, message.messages)
        for reason in totals
    )


def check_status(message: AgentStatus) -> None:
    """Check what is kept of an agent's account of itself.

    Raises:
        ProtocolError: ``bad_message``.
    """
    account = message.account
    if account is None:
        return
    for totals in (account.cpu_us, account.lost, account.errors):
        _check_range("totals of an account", len(totals), 0, _MAX_PLACES)
        for name in totals:
            _check_text("name of a total", name)


def _check_range(what: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise ProtocolError(
            BAD_MESSAGE, f"expected {what} between {lowest} and {highest}, got {value}"
        )


def _check_id(what: str, value: str) -> None:
    if not _ID.fullmatch(value):
        raise ProtocolError(
            BAD_MESSAGE,
            f"expected {what} of 1 to 128 letters, digits, dots, dashes, got {value[:40]!r}",
        )


def _check_text(what: str, value: str) -> None:
    if len(value) > MAX_NAME_LENGTH:
        raise ProtocolError(
            BAD_MESSAGE,
            f"expected {what} of at most {MAX_NAME_LENGTH} characters, got {len(value)}",
        )
    _check_nul(value)


def _check_nul(value: str) -> None:
    if "\0" in value:  # PostgreSQL has no text with it
        raise ProtocolError(BAD_MESSAGE, "expected text without NUL characters")


def _check_json(what: str, value: Any) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise ProtocolError(BAD_MESSAGE, f"expected {what} that JSON can say: {error}") from None

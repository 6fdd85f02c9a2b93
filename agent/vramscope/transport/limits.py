"""Time and size bounds of talking to the server; tests set any of them to next to nothing."""

from __future__ import annotations

from msgspec import Struct


class ConnectionLimits(Struct, frozen=True):
    """Time and size bounds of one connection."""

    open_timeout_s: float = 5.0
    send_timeout_s: float = 10.0
    """A write that makes no progress for so long ends the connection."""
    close_timeout_s: float = 1.0
    max_frames_per_s: int = 500
    """A server that sends more (an honest one acks about once a second) is dropped."""
    max_cpu_fraction: float = 0.2
    """So is one whose frames, of whatever kind, take more of a core to read."""


class TransportLimits(Struct, frozen=True):
    """Bounds of the conversation with the server."""

    window_bytes: int = 2 << 20
    """Bytes sent and not acknowledged: a server that accepts and never acknowledges holds no
    more of the outbox than this."""
    welcome_timeout_s: float = 10.0
    ack_timeout_s: float = 30.0
    permanent_retry_s: float = 60.0
    settled_after_s: float = 10.0
    """A connection that lasted so long makes the next delays short again."""
    idle_wait_s: float = 5.0
    connection: ConnectionLimits = ConnectionLimits()

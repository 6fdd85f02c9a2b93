"""Which of the statuses that come every second tell something: most only count on. Pure."""

from __future__ import annotations

from typing import Any, Final

from vramscope_protocol.messages import AgentStatus

QUIET_INTERVAL_S: Final = 5.0
"""While all is well and nothing changes, a status is sent so often."""

_MUCH_BYTES: Final = 1 << 20
"""More than a server that takes what it gets leaves waiting."""


class StatusNews:
    """Chooses the statuses of one connection that are sent."""

    def __init__(self) -> None:
        self._told: Any = None
        self._told_s = 0.0

    def is_news(self, status: AgentStatus, now_s: float) -> bool:
        """Whether to send this one.

        Args:
            status: the newest.
            now_s: monotonic time.
        """
        says = _says(status)
        if says == self._told and _is_well(status) and now_s - self._told_s < QUIET_INTERVAL_S:
            return False
        self._told = says
        self._told_s = now_s
        return True


def _says(status: AgentStatus) -> Any:
    """What of it means something new when it is another."""
    account = status.account
    counted = None if account is None else (account.lost, account.errors, account.wanted_rate_hz)
    return (
        status.rate_hz,
        status.notes,
        status.guard_errors,
        status.processes,
        status.outside,
        counted,
    )


def _is_well(status: AgentStatus) -> bool:
    """Whether nothing has to be followed: a low rate, say, is judged by how long it lasts."""
    account = status.account
    is_slow = account is None or status.rate_hz < account.wanted_rate_hz
    return not (is_slow or status.spool_bytes or status.outbox_bytes > _MUCH_BYTES)

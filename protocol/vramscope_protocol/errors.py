"""Error codes that travel, the close codes that go with them, and the exceptions behind them."""

from __future__ import annotations

from typing import Final

BAD_MESSAGE: Final = "bad_message"
TOO_LARGE: Final = "too_large"
UNEXPECTED_MESSAGE: Final = "unexpected_message"
VERSION_MISMATCH: Final = "version_mismatch"
AUTH_FAILED: Final = "auth_failed"
TOKEN_EXPIRED: Final = "token_expired"
FORBIDDEN: Final = "forbidden"
ORIGIN_REFUSED: Final = "origin_refused"
TIMEOUT: Final = "timeout"
SLOW_READER: Final = "slow_reader"
REPLACED: Final = "replaced"
RANK_TAKEN: Final = "rank_taken"
SHUTTING_DOWN: Final = "shutting_down"
NOT_FOUND: Final = "not_found"
BAD_REQUEST: Final = "bad_request"
CONFLICT: Final = "conflict"
RATE_LIMITED: Final = "rate_limited"
INTERNAL: Final = "internal"

CLOSE_CODES: Final[dict[str, int]] = {
    BAD_MESSAGE: 4400,
    AUTH_FAILED: 4401,
    TOKEN_EXPIRED: 4402,
    FORBIDDEN: 4403,
    NOT_FOUND: 4404,
    TIMEOUT: 4408,
    REPLACED: 4409,
    RANK_TAKEN: 4410,
    TOO_LARGE: 4413,
    UNEXPECTED_MESSAGE: 4422,
    VERSION_MISMATCH: 4426,
    SLOW_READER: 4429,
    ORIGIN_REFUSED: 4430,
    RATE_LIMITED: 4431,
    INTERNAL: 4500,
    SHUTTING_DOWN: 4503,
}
"""Websocket close code of each error that ends a connection (private range 4000-4999)."""

PERMANENT: Final = frozenset({AUTH_FAILED, TOKEN_EXPIRED, FORBIDDEN, VERSION_MISMATCH, REPLACED})
"""Errors that the same call would meet again: a peer waits long, or stops, instead of retrying."""


class VramscopeError(Exception):
    """Base of every error that vramscope raises on purpose.

    Args:
        code: one of the constants of this module; the other side acts on it.
        message: one sentence for a person: expected, got, what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ProtocolError(VramscopeError):
    """The peer broke the protocol; the connection ends with :attr:`close_code`."""

    @property
    def close_code(self) -> int:
        """Websocket close code that tells the peer why."""
        return CLOSE_CODES.get(self.code, CLOSE_CODES[INTERNAL])

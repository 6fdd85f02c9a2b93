"""Why a connection failed, in words, and whether trying again soon makes sense."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from websockets.exceptions import (
    ConnectionClosed,
    InvalidStatus,
    WebSocketException,
)

from vramscope.transport.address import ServerAddress
from vramscope_protocol.errors import (
    AUTH_FAILED,
    CLOSE_CODES,
    PERMANENT,
    RATE_LIMITED,
    TOKEN_EXPIRED,
    ProtocolError,
    VramscopeError,
)

CONVERSATION_ERRORS: Final = (OSError, WebSocketException, VramscopeError)
"""What talking to any peer may raise."""
CONNECT_ERRORS: Final = (*CONVERSATION_ERRORS, RuntimeError, ValueError)
"""What connecting may raise besides: RuntimeError is a thread that cannot be started (limit
reached, or the interpreter is shutting down), ValueError a redirect or a bad host name."""

_MAX_SAID: Final = 300
_CODE_OF_CLOSE: Final = {close: code for code, close in CLOSE_CODES.items()}
_ADVICE: Final = {
    AUTH_FAILED: "; give the server's token as --token or VRAMSCOPE_TOKEN",
    TOKEN_EXPIRED: "; make a new one with: vramscope token",
}


class Refused(VramscopeError):
    """The server ended the conversation with an error of its own."""


class Failure(Struct, frozen=True):
    """One failed connection. ``key`` is the same for the same cause."""

    key: str
    text: str
    is_permanent: bool = False
    """The same call would fail again: wait long instead of retrying."""
    is_violation: bool = False
    """The peer broke the protocol; noted for good, since it is a fault of the server."""


def failure_of(error: BaseException, address: ServerAddress) -> Failure:
    """Put an error of a conversation into words."""
    where = address.http_url
    if isinstance(error, ValueError) and isinstance(error.__cause__, InvalidStatus):
        error = error.__cause__  # a redirect, which is not followed: the token stays here
    if isinstance(error, ConnectionClosed):
        return _closed(error, where)
    if isinstance(error, InvalidStatus):
        return _http_status(error.response.status_code, where)
    if isinstance(error, ProtocolError):
        text = f"the server at {where} broke the protocol: {error.message}"
        return Failure(error.code, text, error.code == RATE_LIMITED, True)
    if isinstance(error, Refused):
        return _refused(error.code, error.message, where)
    if isinstance(error, WebSocketException) and not isinstance(error.__cause__, EOFError):
        return Failure("not-vramscope", f"what answers at {where} is not a vramscope server", True)
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Failure("unreachable", f"no server answers at {where} ({reason})")


def _refused(code: str, message: str, where: str) -> Failure:
    said = message[:_MAX_SAID]
    text = f"the server at {where} refused this process: {said}{_ADVICE.get(code, '')}"
    # One key for all codes that we do not know: what has been said is remembered by key.
    return Failure(code if code in CLOSE_CODES else "refused", text, code in PERMANENT)


def _http_status(status: int, where: str) -> Failure:
    if status >= 500 or status == 429:
        return Failure("unreachable", f"the server at {where} is not ready (HTTP {status})")
    return Failure(
        f"http-{status}",
        f"the server at {where} does not take agents (HTTP {status}); "
        "expected the address of a vramscope server",
        True,
    )


def _closed(error: ConnectionClosed, where: str) -> Failure:
    if error.sent is not None and error.sent.code in (1002, 1007, 1009):
        # The websocket library closed: malformed or oversized frames.
        text = f"the server at {where} broke the protocol: {error.sent.reason or error}"
        return Failure("bad_frame", text, False, True)
    received = error.rcvd
    code = _CODE_OF_CLOSE.get(received.code) if received is not None else None
    if received is not None and code is not None:
        return _refused(code, received.reason or code, where)
    reason = error.__cause__ or error
    return Failure("unreachable", f"the connection to {where} was lost ({reason})")

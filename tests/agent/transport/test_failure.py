from __future__ import annotations

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import (
    ConnectionClosedError,
    InvalidMessage,
    InvalidStatus,
)
from websockets.frames import Close
from websockets.http11 import Response

from vramscope.transport.address import parse_address
from vramscope.transport.failure import Refused, failure_of
from vramscope_protocol.errors import (
    AUTH_FAILED,
    BAD_MESSAGE,
    RATE_LIMITED,
    SHUTTING_DOWN,
    TOKEN_EXPIRED,
    ProtocolError,
)

ADDRESS = parse_address("http://box:8470")


def status(code: int) -> InvalidStatus:
    return InvalidStatus(Response(code, "reason", Headers()))


def cut_in_the_handshake() -> InvalidMessage:
    error = InvalidMessage("did not receive a valid HTTP response")
    error.__cause__ = EOFError("connection closed while reading HTTP status line")
    return error


def redirect() -> ValueError:
    error = ValueError("cannot follow redirect")
    error.__cause__ = status(302)
    return error


@pytest.mark.parametrize(
    ("error", "key", "is_permanent", "is_violation"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "unreachable", False, False),
        (TimeoutError("timed out"), "unreachable", False, False),
        (RuntimeError("can't start new thread"), "unreachable", False, False),
        (status(503), "unreachable", False, False),
        (status(404), "http-404", True, False),
        (status(403), "http-403", True, False),
        (cut_in_the_handshake(), "unreachable", False, False),
        (redirect(), "http-302", True, False),
        (InvalidMessage("did not receive a valid HTTP response"), "not-vramscope", True, False),
        (Refused(AUTH_FAILED, "no such token"), AUTH_FAILED, True, False),
        (Refused(SHUTTING_DOWN, "bye"), SHUTTING_DOWN, False, False),
        (ConnectionClosedError(Close(4402, ""), None), TOKEN_EXPIRED, True, False),
        (ConnectionClosedError(Close(4503, ""), None), SHUTTING_DOWN, False, False),
        (ConnectionClosedError(None, Close(1009, "too big")), "bad_frame", False, True),
        (ConnectionClosedError(None, None), "unreachable", False, False),
        (ProtocolError(BAD_MESSAGE, "nonsense"), BAD_MESSAGE, False, True),
        (ProtocolError(RATE_LIMITED, "a flood"), RATE_LIMITED, True, True),
        (Refused("code-1-of-a-million", "x" * 100_000), "refused", False, False),
    ],
)
def test_each_error_has_its_words_and_its_patience(
    error: BaseException, key: str, is_permanent: bool, is_violation: bool
) -> None:
    failure = failure_of(error, ADDRESS)
    assert (failure.key, failure.is_permanent, failure.is_violation) == (
        key,
        is_permanent,
        is_violation,
    )
    assert "http://box:8470" in failure.text
    assert "\n" not in failure.text
    assert len(failure.text) < 500

"""Codes that travel: each has one meaning and one close code."""

from __future__ import annotations

from vramscope_protocol import errors
from vramscope_protocol.errors import CLOSE_CODES, PERMANENT, ProtocolError, VramscopeError


def codes() -> set[str]:
    return {
        value
        for name, value in vars(errors).items()
        if name.isupper() and isinstance(value, str) and not name.startswith("_")
    }


def test_code_is_its_constant_in_lower_case() -> None:
    assert {getattr(errors, code.upper()) for code in codes()} == codes()


def test_close_codes_are_private_and_different() -> None:
    assert set(CLOSE_CODES) <= codes()
    assert len(set(CLOSE_CODES.values())) == len(CLOSE_CODES)
    assert all(4000 <= close_code <= 4999 for close_code in CLOSE_CODES.values())


def test_errors_without_close_code_are_answers_not_endings() -> None:
    assert codes() - set(CLOSE_CODES) == {"bad_request", "conflict"}


def test_permanent_errors_end_connections() -> None:
    assert set(CLOSE_CODES) > PERMANENT
    assert not PERMANENT & {"shutting_down", "timeout", "internal", "slow_reader"}


def test_protocol_error_carries_code_text_and_close_code() -> None:
    error = ProtocolError("auth_failed", "expected a token")
    assert isinstance(error, VramscopeError)
    assert (error.code, error.message, str(error)) == (
        "auth_failed",
        "expected a token",
        "expected a token",
    )
    assert error.close_code == 4401


def test_code_without_close_code_closes_as_internal() -> None:
    assert ProtocolError("conflict", "x").close_code == CLOSE_CODES["internal"]

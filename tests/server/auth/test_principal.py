from __future__ import annotations

import time

import pytest

from vramscope_protocol.errors import FORBIDDEN, TOKEN_EXPIRED, VramscopeError
from vramscope_server.auth.principal import CONTROL, VIEW, Principal


def test_a_scope_that_is_there_passes() -> None:
    Principal("x", frozenset({VIEW})).require(VIEW)


def test_a_scope_that_is_missing_is_named() -> None:
    with pytest.raises(VramscopeError, match="'control', got view") as refused:
        Principal("x", frozenset({VIEW})).require(CONTROL)
    assert refused.value.code == FORBIDDEN


def test_an_expired_token_passes_nowhere() -> None:
    expired = Principal("ci", frozenset({VIEW}), time.time_ns() - 1)
    with pytest.raises(VramscopeError, match="'ci' has expired") as refused:
        expired.require(VIEW)
    assert refused.value.code == TOKEN_EXPIRED

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


def test_one_of_a_single_run_passes_nowhere_else() -> None:
    framed = Principal("x", frozenset({VIEW}), run_id="r1")
    framed.require_run("r1")
    for other in ("r2", None):
        with pytest.raises(VramscopeError, match="one run only") as refused:
            framed.require_run(other)
        assert refused.value.code == FORBIDDEN
    Principal("x", frozenset({VIEW})).require_run("r2")


def test_an_expired_token_passes_nowhere() -> None:
    expired = Principal("ci", frozenset({VIEW}), time.time_ns() - 1)
    with pytest.raises(VramscopeError, match="'ci' has expired") as refused:
        expired.require(VIEW)
    assert refused.value.code == TOKEN_EXPIRED

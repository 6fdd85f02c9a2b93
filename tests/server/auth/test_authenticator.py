from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope_protocol.errors import AUTH_FAILED, RATE_LIMITED, TOKEN_EXPIRED, VramscopeError
from vramscope_server.auth.authenticator import Authenticator
from vramscope_server.auth.principal import SCOPES
from vramscope_server.settings import Limits
from vramscope_server.store import tokens
from vramscope_server.store.store import Store

HERE = "127.0.0.1"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path / 'x.db'}")
    yield opened
    opened.close()


def make(store: Store, *scopes: str, expires_ns: int | None = None) -> str:
    return store.write_now(
        lambda c: tokens.create_token(c, "made", scopes, 1, expires_ns=expires_ns)
    )[0]


def refusal(authenticator: Authenticator, secret: str, address: str = HERE) -> str:
    with pytest.raises(VramscopeError) as refused:
        asyncio.run(authenticator.verify_token(secret, address))
    return refused.value.code


def test_the_fixed_token_has_every_scope(store: Store) -> None:
    principal = asyncio.run(Authenticator(store, Limits(), "fixed").verify_token("fixed", HERE))
    assert (principal.name, principal.scopes) == ("owner", SCOPES)
    assert "fixed" not in principal.fingerprint


def test_without_one_each_server_makes_its_own(store: Store) -> None:
    one, two = Authenticator(store, Limits()), Authenticator(store, Limits())
    assert len(one.fixed_token) >= 43
    assert one.fixed_token != two.fixed_token
    assert refusal(two, one.fixed_token) == AUTH_FAILED


def test_a_stored_token_has_its_own_scopes(store: Store) -> None:
    secret = make(store, "view", "agent")
    authenticator = Authenticator(store, Limits())
    assert asyncio.run(authenticator.verify_token(secret, HERE)).scopes == {"view", "agent"}


def test_runs_are_of_one_stored_token_or_of_the_servers_own_whichever_that_is(
    store: Store,
) -> None:
    def owner(authenticator: Authenticator, secret: str) -> str:
        return asyncio.run(authenticator.verify_token(secret, HERE)).owner

    one, two = make(store, "agent"), make(store, "agent")
    first, second = Authenticator(store, Limits()), Authenticator(store, Limits(), "given")
    assert owner(first, one) == owner(second, one) != owner(first, two)
    assert owner(first, first.fixed_token) == owner(second, "given") == "owner"


def test_expired_and_revoked_tokens_are_told_apart(store: Store) -> None:
    authenticator = Authenticator(store, Limits(auth_cache_s=0))
    assert refusal(authenticator, make(store, "view", expires_ns=time.time_ns())) == TOKEN_EXPIRED
    secret = make(store, "view")
    asyncio.run(authenticator.verify_token(secret, HERE))
    store.write_now(lambda c: tokens.revoke_token(c, 2, 5))
    assert refusal(authenticator, secret) == AUTH_FAILED


def test_a_verified_token_is_trusted_for_a_while_but_not_beyond_its_end(store: Store) -> None:
    authenticator = Authenticator(store, Limits(auth_cache_s=3600))
    secret = make(store, "view", expires_ns=time.time_ns() + 200_000_000)
    asyncio.run(authenticator.verify_token(secret, HERE))
    store.write_now(lambda c: tokens.revoke_token(c, 1, 5))
    asyncio.run(authenticator.verify_token(secret, HERE))
    time.sleep(0.2)  # the life of the token, not a wait for an event
    assert refusal(authenticator, secret) == TOKEN_EXPIRED


def test_guessing_is_slowed_down_by_address(store: Store) -> None:
    authenticator = Authenticator(store, Limits(auth_failures=1, auth_cache_s=0), "fixed")
    asyncio.run(authenticator.verify_token("fixed", "10.0.0.1"))
    assert refusal(authenticator, "guess", "10.0.0.1") == AUTH_FAILED
    assert refusal(authenticator, "guess", "10.0.0.1") == RATE_LIMITED
    assert refusal(authenticator, "guess", "10.0.0.2") == AUTH_FAILED
    # A token that was good before is not locked out by its neighbours.
    assert asyncio.run(authenticator.verify_token("fixed", "10.0.0.1")).name == "owner"


def test_a_right_guess_is_not_told_while_slowed_down(store: Store) -> None:
    authenticator = Authenticator(store, Limits(auth_failures=1), "fixed")
    refusal(authenticator, "guess")
    assert refusal(authenticator, "fixed") == RATE_LIMITED


def test_a_session_is_its_tokens_child(store: Store) -> None:
    authenticator = Authenticator(store, Limits(auth_cache_s=0), "fixed")
    end_ns = time.time_ns() + 10**12
    secret = make(store, "view", expires_ns=end_ns)
    session = asyncio.run(authenticator.open_session(secret, HERE))
    principal = asyncio.run(authenticator.verify_session(session))
    assert (principal.scopes, principal.expires_ns) == (frozenset({"view"}), end_ns)
    assert refusal(authenticator, session) == AUTH_FAILED
    with pytest.raises(VramscopeError):
        asyncio.run(authenticator.verify_session(secret))
    store.write_now(lambda c: tokens.revoke_token(c, 1, 5))
    with pytest.raises(VramscopeError, match="behind this session has been revoked"):
        asyncio.run(authenticator.verify_session(session))


def test_a_session_of_the_printed_token_outlives_the_server(store: Store) -> None:
    first = Authenticator(store, Limits())
    session = asyncio.run(first.open_session(first.fixed_token, HERE))
    assert asyncio.run(Authenticator(store, Limits()).verify_session(session)).name == "owner"
    with pytest.raises(VramscopeError, match="has changed"):
        asyncio.run(Authenticator(store, Limits(), "fixed").verify_session(session))


def test_sessions_that_are_over_are_forgotten_at_the_start(store: Store) -> None:
    authenticator = Authenticator(store, Limits(auth_cache_s=0), "fixed")
    live, ended = (asyncio.run(authenticator.open_session("fixed", HERE)) for _ in range(2))
    make(store, "view", expires_ns=1)
    asyncio.run(authenticator.close_session(ended))
    asyncio.run(authenticator.start())
    assert asyncio.run(authenticator.verify_session(live)).name == "owner"
    assert len(store.read_now(lambda c: tokens.list_tokens(c, "session"))) == 1
    assert len(store.read_now(tokens.list_tokens)) == 1, "an expired token is still listed"


def test_a_frame_is_its_callers_child_for_one_run_and_some_hours(store: Store) -> None:
    authenticator = Authenticator(store, Limits(auth_cache_s=0, frame_s=60), "fixed")
    secret = make(store, "view", "agent")
    caller = asyncio.run(authenticator.verify_token(secret, HERE))
    frame, record = asyncio.run(authenticator.open_frame(caller, "r1", ["view", "control"]))
    principal = asyncio.run(authenticator.verify_token(frame, HERE))
    assert (principal.scopes, principal.run_id) == (frozenset({"view"}), "r1")
    assert record.expires_ns is not None
    assert abs(record.expires_ns - time.time_ns() - 60e9) < 30e9
    store.write_now(lambda c: tokens.revoke_token(c, 1, 5))
    with pytest.raises(VramscopeError, match="behind this frame has been revoked"):
        asyncio.run(authenticator.verify_token(frame, HERE))


def test_a_frame_does_not_outlive_the_token_behind_it(store: Store) -> None:
    authenticator = Authenticator(store, Limits(auth_cache_s=0), "fixed")
    end_ns = time.time_ns() + 10**11
    caller = asyncio.run(authenticator.verify_token(make(store, "view", expires_ns=end_ns), HERE))
    _frame, record = asyncio.run(authenticator.open_frame(caller, "r1", []))
    assert record.expires_ns == end_ns
    owner = asyncio.run(authenticator.verify_token("fixed", HERE))
    frame, _record = asyncio.run(authenticator.open_frame(owner, "r1", ["view"]))
    with pytest.raises(VramscopeError, match="behind this frame has changed"):
        asyncio.run(Authenticator(store, Limits(), "another").verify_token(frame, HERE))


def test_a_frame_gets_out_of_its_run_by_no_way(store: Store) -> None:
    authenticator = Authenticator(store, Limits(), "fixed")
    owner = asyncio.run(authenticator.verify_token("fixed", HERE))
    frame, _record = asyncio.run(authenticator.open_frame(owner, "r1", ["view", "control"]))
    principal = asyncio.run(authenticator.verify_token(frame, HERE))
    assert principal.scopes == {"view", "control"}
    with pytest.raises(VramscopeError, match="one run only"):
        asyncio.run(authenticator.open_session(frame, HERE))
    with pytest.raises(VramscopeError, match="one run only"):
        asyncio.run(authenticator.open_frame(principal, "r2", ["view"]))


def test_who_may_not_view_makes_no_frame(store: Store) -> None:
    authenticator = Authenticator(store, Limits(), "fixed")
    caller = asyncio.run(authenticator.verify_token(make(store, "agent"), HERE))
    with pytest.raises(VramscopeError, match="'view', got agent"):
        asyncio.run(authenticator.open_frame(caller, "r1", ["view"]))


def test_frames_that_have_ended_lock_nobody_out(store: Store) -> None:
    authenticator = Authenticator(store, Limits(auth_failures=1), "fixed")
    owner = asyncio.run(authenticator.verify_token("fixed", HERE))
    ended = make(store, "view", expires_ns=time.time_ns())
    elsewhere = "10.0.0.1"
    assert [refusal(authenticator, ended, elsewhere) for _ in range(3)] == [TOKEN_EXPIRED] * 3
    assert refusal(authenticator, "guess", elsewhere) == AUTH_FAILED
    assert refusal(authenticator, "guess", elsewhere) == RATE_LIMITED
    # A new frame is good at once, although its address is being slowed down.
    frame, _record = asyncio.run(authenticator.open_frame(owner, "r1", ["view"]))
    assert asyncio.run(authenticator.verify_token(frame, elsewhere)).run_id == "r1"


def test_no_secret_is_stored(store: Store, tmp_path: Path) -> None:
    authenticator = Authenticator(store, Limits(), "the-fixed-token")
    session = asyncio.run(authenticator.open_session("the-fixed-token", HERE))
    made = make(store, "view")
    store.close()
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for secret in (session, made, "the-fixed-token"):
        assert secret.encode() not in data

"""From a secret to a principal: the fixed token, stored tokens, browser sessions, frames.

The secret of this server's life (``--token``, or the one made at start and printed in the URL)
is valid as often as it is used while the server runs: the page can be reloaded and a second
browser can be opened with the same URL. What the browser keeps is a session of its own, stored
hashed, so that it survives a restart of the server.

A frame is a page of ours inside a page of somebody else, such as a notebook. It has a token of its
own that is good for one run and for some hours, because it is saved with the page around it.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from vramscope_protocol.errors import AUTH_FAILED, VramscopeError
from vramscope_server.auth.principal import AGENT, FIXED, SCOPES, VIEW, Principal
from vramscope_server.auth.throttle import Throttle
from vramscope_server.settings import Limits
from vramscope_server.store import tokens
from vramscope_server.store.store import Store
from vramscope_server.store.tokens import TokenRecord

_MAX_CACHED: Final = 1024
_FAILURES_PER_S: Final = 1 / 6
_SESSION: Final = "session"
_FRAME: Final = "frame"


class Authenticator:
    """Checks secrets against the fixed token and the store.

    Args:
        store: where tokens and sessions are.
        limits: bounds on failures and on how long an answer is trusted.
        fixed_token: the token that was given as an option, or None to make one for this life.
    """

    def __init__(self, store: Store, limits: Limits, fixed_token: str | None = None) -> None:
        self._store = store
        self._limits = limits
        self.fixed_token = fixed_token or tokens.new_secret()
        self._fixed_digest = _digest(self.fixed_token)
        # Sessions of a token given as an option end when the option changes. Sessions of a token
        # made at start outlive it: only this machine's user could read it.
        self._fixed_parent = (
            f"{FIXED}{_fingerprint(self._fixed_digest)}" if fixed_token else f"{FIXED}made-at-start"
        )
        self._failures = Throttle(
            "wrong tokens", limits.auth_failures, _FAILURES_PER_S, limits.auth_addresses
        )
        self._cache: OrderedDict[tuple[str, bytes], tuple[Principal, float]] = OrderedDict()

    async def start(self) -> None:
        """Forget sessions that are over."""
        await self._store.write(lambda c: tokens.forget_sessions(c, time.time_ns()))

    async def verify_token(self, secret: str, address: str) -> Principal:
        """Who presents this token from ``address``.

        A token that was good before is looked up even while its address is being slowed down, so
        that a misconfigured process does not lock its neighbours out.

        Raises:
            VramscopeError: ``auth_failed``, ``token_expired`` or ``rate_limited``.
        """
        digest = _digest(secret)
        cached = self._cached("token", digest)
        if cached is not None:
            cached.require_unexpired()
            return cached
        if ("token", digest) not in self._cache:
            self._failures.check(address)
        try:
            principal = await self._look_up_token(secret, digest)
        except VramscopeError as error:
            # One that has expired was no guess: a notebook full of old frames locks nobody out.
            if error.code == AUTH_FAILED:
                self._failures.use(address)
            raise
        self._remember("token", digest, principal)
        return principal

    async def verify_session(self, secret: str) -> Principal:
        """Whose browser session this is.

        Raises:
            VramscopeError: ``auth_failed`` or ``token_expired``.
        """
        digest = _digest(secret)
        cached = self._cached(_SESSION, digest)
        if cached is not None:
            cached.require_unexpired()
            return cached
        principal = await self._store.read(lambda c: self._find_session(c, secret))
        self._remember(_SESSION, digest, principal)
        return principal

    async def open_session(self, token: str, address: str) -> str:
        """Exchange a token for the secret of a new browser session.

        Raises:
            VramscopeError: as :meth:`verify_token`.
        """
        principal = await self.verify_token(token, address)
        # A browser that is signed in sees every run.
        principal.require_run(None)

        def insert(connection: Connection) -> str:
            secret, _record = tokens.create_token(
                connection,
                principal.name,
                principal.scopes,
                time.time_ns(),
                expires_ns=_end_ns(principal, self._limits.session_s),
                kind=_SESSION,
                parent=principal.parent,
            )
            return secret

        return await self._store.write(insert)

    async def open_frame(
        self, caller: Principal, run_id: str, scopes: Iterable[str]
    ) -> tuple[str, TokenRecord]:
        """Make a token for one page inside another: for one run, for ``frame_s`` at most.

        Args:
            caller: who asks; the frame ends with the token behind it.
            run_id: the run that the page shows.
            scopes: what the page may do, as far as the caller may.

        Returns:
            The secret, and what is known of the token.

        Raises:
            VramscopeError: ``forbidden``: the caller may not view, or is a frame itself.
        """
        caller.require(VIEW)
        caller.require_run(None)
        allowed = (frozenset(scopes) | {VIEW}) & caller.scopes - {AGENT}

        def insert(connection: Connection) -> tuple[str, TokenRecord]:
            tokens.forget_sessions(connection, time.time_ns())
            return tokens.create_token(
                connection,
                f"{caller.name} in a frame",
                allowed,
                time.time_ns(),
                expires_ns=_end_ns(caller, self._limits.frame_s),
                kind=_FRAME,
                parent=caller.parent,
                run_id=run_id,
            )

        secret, record = await self._store.write(insert)
        # Known from the start: other wrong tokens of the same address do not slow it down.
        digest = _digest(secret)
        self._remember("token", digest, _principal(record, digest))
        return secret, record

    async def close_session(self, secret: str) -> None:
        """Sign the browser out. A session that is not known is signed out already."""

        def revoke(connection: Connection) -> None:
            record = tokens.find_token(connection, secret)
            if record is not None and record.kind == _SESSION:
                tokens.revoke_token(connection, record.id, time.time_ns())

        await self._store.write(revoke)
        self._cache.pop((_SESSION, _digest(secret)), None)

    async def _look_up_token(self, secret: str, digest: bytes) -> Principal:
        if hmac.compare_digest(digest, self._fixed_digest):
            return Principal("owner", SCOPES, None, _fingerprint(digest), self._fixed_parent)
        return await self._store.read(lambda c: self._find_token(c, secret, digest))

    def _find_token(self, connection: Connection, secret: str, digest: bytes) -> Principal:
        record = tokens.find_token(connection, secret)
        if record is None or record.kind == _SESSION:
            raise VramscopeError(AUTH_FAILED, "the token is not known to this server")
        if record.kind == _FRAME:
            self._check_parent(connection, record)
        return _principal(record, digest)

    def _find_session(self, connection: Connection, secret: str) -> Principal:
        record = tokens.find_token(connection, secret)
        if record is None or record.kind != _SESSION:
            raise VramscopeError(AUTH_FAILED, "the session is not known to this server")
        self._check_parent(connection, record)
        return _principal(record, _digest(secret))

    def _check_parent(self, connection: Connection, record: TokenRecord) -> None:
        """Refuse what was made from a token that is not good any more."""
        if record.parent.startswith(FIXED):
            if record.parent != self._fixed_parent:
                raise VramscopeError(
                    AUTH_FAILED, f"the token behind this {record.kind} has changed"
                )
            return
        parents = {str(token.id): token for token in tokens.list_tokens(connection)}
        parent = parents.get(record.parent)
        if parent is None or parent.revoked_ns is not None:
            raise VramscopeError(
                AUTH_FAILED, f"the token behind this {record.kind} has been revoked"
            )

    def _cached(self, kind: str, digest: bytes) -> Principal | None:
        entry = self._cache.get((kind, digest))
        if entry is None or time.monotonic() - entry[1] > self._limits.auth_cache_s:
            return None
        return entry[0]

    def _remember(self, kind: str, digest: bytes, principal: Principal) -> None:
        self._cache[kind, digest] = (principal, time.monotonic())
        self._cache.move_to_end((kind, digest))
        while len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)


def _digest(secret: str) -> bytes:
    # Secrets made here are 256 random bits, so that one round of SHA-256 is enough.
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _fingerprint(digest: bytes) -> str:
    return digest.hex()[:12]


def _principal(record: TokenRecord, digest: bytes) -> Principal:
    if record.revoked_ns is not None:
        raise VramscopeError(AUTH_FAILED, f"the token {record.name!r} has been revoked")
    principal = Principal(record.name, record.scopes, record.expires_ns)
    principal.require_unexpired()
    return replace(
        principal,
        fingerprint=_fingerprint(digest),
        parent=record.parent or str(record.id),
        run_id=record.run_id,
    )


def _end_ns(principal: Principal, life_s: float) -> int:
    """When something of that life ends that never outlives ``principal``'s own token."""
    end_ns = time.time_ns() + int(life_s * 1e9)
    return end_ns if principal.expires_ns is None else min(end_ns, principal.expires_ns)

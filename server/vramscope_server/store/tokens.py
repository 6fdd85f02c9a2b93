"""Tokens and browser sessions. Only hashes are stored: who reads the database learns no secret."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from vramscope_server.store import tables

_tokens = tables.tokens


@dataclass(frozen=True)
class TokenRecord:
    """What is known of a token; its secret is not.

    ``kind`` is ``token``, or ``session`` for a browser's cookie, or ``frame`` for a page inside
    another one. The last two have as ``parent`` the token that they were made from, and a frame's
    is good for one run only.
    """

    id: int
    name: str
    scopes: frozenset[str]
    created_ns: int
    expires_ns: int | None = None
    revoked_ns: int | None = None
    kind: str = "token"
    parent: str = ""
    run_id: str | None = None


def hash_token(secret: str) -> str:
    """What is stored of a secret. Secrets have 256 random bits, so no salt or stretching helps."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_secret() -> str:
    """A secret that nobody guesses; its prefix tells what it is, and keeps it from being taken for
    an option on a command line."""
    return f"vs_{secrets.token_urlsafe(32)}"


def create_token(
    connection: Connection,
    name: str,
    scopes: Iterable[str],
    now_ns: int,
    secret: str | None = None,
    expires_ns: int | None = None,
    kind: str = "token",
    parent: str = "",
    run_id: str | None = None,
) -> tuple[str, TokenRecord]:
    """Store a token and return its secret, which cannot be had again."""
    secret = secret or new_secret()
    allowed = frozenset(scopes)
    token_id = connection.execute(
        insert(_tokens)
        .values(
            name=name,
            hash=hash_token(secret),
            kind=kind,
            parent=parent,
            run_id=run_id,
            scopes=msgspec.json.encode(sorted(allowed)).decode(),
            created_ns=now_ns,
            expires_ns=expires_ns,
        )
        .returning(_tokens.c.id)
    ).scalar_one()
    record = TokenRecord(token_id, name, allowed, now_ns, expires_ns, None, kind, parent, run_id)
    return secret, record


def find_token(connection: Connection, secret: str) -> TokenRecord | None:
    """The token of that secret, also an expired or revoked one."""
    row = connection.execute(
        select(_tokens).where(_tokens.c.hash == hash_token(secret))
    ).one_or_none()
    return None if row is None else _record(row)


def list_tokens(connection: Connection, kind: str = "token") -> list[TokenRecord]:
    """All tokens of a kind, oldest first."""
    rows = connection.execute(
        select(_tokens).where(_tokens.c.kind == kind).order_by(_tokens.c.id)
    ).all()
    return [_record(row) for row in rows]


def revoke_token(connection: Connection, token_id: int, now_ns: int) -> bool:
    """Make a token useless; ``False`` if there is none of that id that still was of use."""
    revoked = connection.execute(
        update(_tokens)
        .where(_tokens.c.id == token_id, _tokens.c.revoked_ns.is_(None))
        .values(revoked_ns=now_ns)
    )
    return revoked.rowcount == 1


def forget_sessions(connection: Connection, now_ns: int) -> int:
    """Delete sessions and frames that are over, so that the table does not grow; how many."""
    is_over = or_(_tokens.c.revoked_ns.is_not(None), _tokens.c.expires_ns <= now_ns)
    return connection.execute(delete(_tokens).where(_tokens.c.kind != "token", is_over)).rowcount


def _record(row: Row[tuple[object, ...]]) -> TokenRecord:
    return TokenRecord(
        id=row.id,
        name=row.name,
        scopes=frozenset(msgspec.json.decode(row.scopes, type=list[str])),
        created_ns=row.created_ns,
        expires_ns=row.expires_ns,
        revoked_ns=row.revoked_ns,
        kind=row.kind,
        parent=row.parent,
        run_id=row.run_id,
    )

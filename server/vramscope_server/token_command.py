"""``token create | list | revoke``: the tokens of a database, on the machine that has it."""

from __future__ import annotations

import argparse
import json
import re
import time
from datetime import datetime, timezone
from typing import Any, Final

from vramscope_protocol.errors import BAD_REQUEST, NOT_FOUND, VramscopeError
from vramscope_server.auth.principal import SCOPES
from vramscope_server.settings import Settings
from vramscope_server.store import tokens
from vramscope_server.store.store import Store
from vramscope_server.store.tokens import TokenRecord

_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_token_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|list|revoke")
    create = actions.add_parser("create", help="make a token and print it once")
    create.add_argument(
        "--scope", required=True, help="view, control, agent, or several separated by commas"
    )
    create.add_argument("--name", default="", help="shown in the audit log")
    create.add_argument("--expires", default="", metavar="TIME", help="30m, 12h, 90d; empty: never")
    actions.add_parser("list", help="list tokens, without their secrets")
    revoke = actions.add_parser("revoke", help="make a token invalid")
    revoke.add_argument("id", help="as listed")
    for action in (create, *[actions.choices[name] for name in ("list", "revoke")]):
        action.add_argument("--database", default=None, metavar="URL")
        action.add_argument("--json", action="store_true", help="print one JSON object")


def run_token_command(arguments: argparse.Namespace, settings: Settings) -> None:
    """Do what was asked for and print the answer.

    Raises:
        VramscopeError: bad option, unknown token, or the database cannot be opened.
    """
    scopes = parse_scopes(arguments.scope) if arguments.action == "create" else frozenset[str]()
    expires_ns = None
    if arguments.action == "create" and arguments.expires:
        expires_ns = time.time_ns() + parse_duration_s(arguments.expires) * 10**9
    store = Store.open(settings.database)
    try:
        if arguments.action == "create":
            _create(store, arguments, scopes, expires_ns)
        elif arguments.action == "list":
            _list(store, as_json=arguments.json)
        else:
            _revoke(store, arguments.id, as_json=arguments.json)
    finally:
        store.close()


def parse_scopes(text: str) -> frozenset[str]:
    """Scopes of a comma-separated list.

    Raises:
        VramscopeError: ``bad_request``.
    """
    scopes = frozenset(part.strip() for part in text.split(",") if part.strip())
    if not scopes or scopes - SCOPES:
        raise VramscopeError(
            BAD_REQUEST,
            f"--scope: expected some of {', '.join(sorted(SCOPES))}, got {text!r}",
        )
    return scopes


def parse_duration_s(text: str) -> int:
    """Seconds of a duration such as ``90d``.

    Raises:
        VramscopeError: ``bad_request``.
    """
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", text.strip())
    if match is None:
        raise VramscopeError(
            BAD_REQUEST, f"--expires: expected a duration such as 30m, 12h or 90d, got {text!r}"
        )
    return int(match[1]) * _UNIT_S[match[2]]


def _create(
    store: Store, arguments: argparse.Namespace, scopes: frozenset[str], expires_ns: int | None
) -> None:
    name = arguments.name or ",".join(sorted(scopes))
    secret, record = store.write_now(
        lambda c: tokens.create_token(c, name, scopes, time.time_ns(), expires_ns=expires_ns)
    )
    if arguments.json:
        print(json.dumps({**_public(record), "token": secret}))
    else:
        print(secret)


def _list(store: Store, *, as_json: bool) -> None:
    records = store.read_now(tokens.list_tokens)
    if as_json:
        print(json.dumps({"tokens": [_public(record) for record in records]}))
        return
    print(f"{'id':<6} {'scopes':<20} {'expires':<20} {'state':<8} name")
    for record in records:
        public = _public(record)
        scopes = ",".join(public["scopes"])
        expires = _date(record.expires_ns) if record.expires_ns is not None else "never"
        print(f"{record.id!s:<6} {scopes:<20} {expires:<20} {public['state']:<8} {record.name}")


def _revoke(store: Store, token_id: str, *, as_json: bool) -> None:
    record = next((r for r in store.read_now(tokens.list_tokens) if str(r.id) == token_id), None)
    if record is None:
        raise VramscopeError(NOT_FOUND, f"no token with the id {token_id!r}; see: token list")
    store.write_now(lambda c: tokens.revoke_token(c, record.id, time.time_ns()))
    print(json.dumps({"revoked": record.id}) if as_json else f"revoked {record.id}")


def _public(record: TokenRecord) -> dict[str, Any]:
    expired = record.expires_ns is not None and time.time_ns() >= record.expires_ns
    state = "revoked" if record.revoked_ns is not None else "expired" if expired else "valid"
    return {
        "id": record.id,
        "name": record.name,
        "scopes": sorted(record.scopes),
        "created_ns": record.created_ns,
        "expires_ns": record.expires_ns,
        "state": state,
    }


def _date(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")

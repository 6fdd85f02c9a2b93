"""What a person asks for, checked against the declared commands and the ranks of the run."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from vramscope_protocol.command_table import check_params, command_spec
from vramscope_protocol.commands import CommandSpec
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_protocol.user_commands import PREFIX, check_user_params
from vramscope_server.auth.principal import Principal
from vramscope_server.commands.agreement import Agreement
from vramscope_server.commands.rank_rules import CanPrepare, choose_way
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.user_declaration import spec_of, user_command

Origin = Literal["browser", "cli", "api", "server", "policy"]
"""``server``: it asks by itself; ``policy``: because somebody told it when to."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Issuer:
    """Who asks, by which way, and from where."""

    principal: Principal
    origin: Origin
    address: str


@dataclass(frozen=True)
class CommandRequest:
    """A command as it was asked for."""

    name: str
    ranks: list[int] | Literal["all"] = "all"
    params: dict[str, Any] | None = None
    dry_run: bool = False
    deadline_s: float = 30.0
    id: str | None = None
    may_change_training: bool = True
    """Whether who asks has consented to that: a person does on the page or in the shell."""


def make_record(
    request: CommandRequest,
    run: dict[str, Any],
    can_prepare: CanPrepare,
    issuer: Issuer,
    now_ns: int,
    max_deadline_s: float,
) -> CommandRecord:
    """Check a request in every part and make the record of the command.

    Args:
        run: the run with its ranks, as the API has it.

    Raises:
        VramscopeError: ``bad_request``, ``forbidden`` or ``conflict``, with what was expected and
            what came.
    """
    ranks = _target_ranks(request.ranks, [rank["rank"] for rank in run["ranks"]])
    spec, params = _checked(request, ranks, run)
    issuer.principal.require(spec.right)
    if spec.changes_training and not request.may_change_training:
        raise VramscopeError(
            BAD_REQUEST, f"allow_training: expected true, {spec.name} changes training, got false"
        )
    if not 0 < request.deadline_s <= max_deadline_s:
        raise VramscopeError(
            BAD_REQUEST,
            f"deadline_s: expected more than 0 and at most {max_deadline_s:g} seconds, "
            f"got {request.deadline_s:g}",
        )
    if request.id is not None and not _ID.fullmatch(request.id):
        raise VramscopeError(
            BAD_REQUEST,
            f"id: expected 1 to 64 letters, digits, '-' or '_', got {request.id[:80]!r}",
        )
    _check_travels(params)
    way = choose_way(spec, ranks, run, can_prepare, dry_run=request.dry_run)
    return CommandRecord(
        id=request.id or uuid.uuid4().hex,
        run_id=run["id"],
        name=spec.name,
        params=params,
        dry_run=request.dry_run,
        ranks=ranks,
        issued_by=issuer.principal.name,
        origin=issuer.origin,
        created_ns=now_ns,
        deadline_ns=now_ns + int(request.deadline_s * 1e9),
        note=way.note,
        agreement=Agreement() if way.together else None,
    )


def _checked(
    request: CommandRequest, ranks: list[int], run: dict[str, Any]
) -> tuple[CommandSpec, dict[str, Any]]:
    """The command that is meant, and its parameters; of one of the job with its defaults."""
    params = request.params or {}
    if not request.name.startswith(PREFIX):
        spec = command_spec(request.name)
        check_params(spec, params, dry_run=request.dry_run)
        return spec, params
    declared = user_command(request.name, ranks, run)
    spec = spec_of(declared)
    if request.dry_run:
        raise VramscopeError(BAD_REQUEST, f"{spec.name} has no dry run")
    return spec, check_user_params(declared, params)


def _check_travels(params: dict[str, Any]) -> None:
    """What is stored is sent to each rank that connects: it has to fit into a message."""
    try:
        msgspec.msgpack.encode(params)
    except (OverflowError, UnicodeEncodeError, RecursionError) as error:
        raise VramscopeError(
            BAD_REQUEST, f"params: expected values that fit into a message: {error}"
        ) from None


def _target_ranks(wanted: list[int] | Literal["all"], run_ranks: list[int]) -> list[int]:
    if wanted == "all":
        if not run_ranks:
            raise VramscopeError(BAD_REQUEST, "ranks: this run has no rank yet")
        return sorted(run_ranks)
    unknown = sorted(set(wanted) - set(run_ranks))
    if not wanted or unknown:
        known = ", ".join(str(rank) for rank in sorted(run_ranks)[:16]) or "none"
        got = ", ".join(str(rank) for rank in unknown[:16]) or "none"
        raise VramscopeError(
            BAD_REQUEST, f"ranks: expected 'all' or some of the ranks {known}, got {got}"
        )
    return sorted(set(wanted))

"""Whose a run, a stream and a rank are: fixed by who comes first, asked of everybody after.

What is refused says nothing of the run to who does not belong to it: the run is asked about first.
"""

from __future__ import annotations

import hmac
from typing import NamedTuple

from sqlalchemy import Connection, select, update

from vramscope_protocol.claims import hashed_secret, proof_by_hash
from vramscope_protocol.errors import FORBIDDEN, RANK_TAKEN, ProtocolError
from vramscope_protocol.messages import OomBegin, Register
from vramscope_server.store import tables

_runs = tables.runs
_streams = tables.streams


class RunClaim(NamedTuple):
    """Who holds a run: whose token, and the hash of what its ranks know. Empty is nobody yet."""

    owner: str
    secret: str


class Seat(NamedTuple):
    """The process that sits on a rank: its stream, the hash of what it knows, and its name."""

    stream: str
    secret: str
    who: str


def claim_of(connection: Connection, run_id: str) -> RunClaim | None:
    """Who holds a run; ``None``: there is no such run."""
    query = select(_runs.c.owner, _runs.c.secret).where(_runs.c.id == run_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else RunClaim(row.owner, row.secret)


def claim_run(connection: Connection, message: Register, owner: str) -> None:
    """Let a rank into its run, which is stored already; the first one of a run claims it.

    Raises:
        ProtocolError: ``forbidden``: somebody else holds it.
    """
    run_id = message.run.id
    held = claim_of(connection, run_id) or RunClaim("", "")
    offered = hashed_secret(message.run_secret)
    if held.owner and held.owner != owner:
        raise ProtocolError(
            FORBIDDEN,
            f"expected the token that run {run_id} was begun with, got another one; give that one, "
            "or begin another run with --launch-id",
        )
    if held.secret and not hmac.compare_digest(held.secret, offered):
        raise ProtocolError(
            FORBIDDEN,
            f"expected a rank of the launch that began run {run_id}, got one that does not know "
            "its secret; all ranks need the same vramscope release, and each launch its own id",
        )
    claimed = RunClaim(held.owner or owner, held.secret or offered)
    if claimed != held:
        connection.execute(update(_runs).where(_runs.c.id == run_id).values(claimed._asdict()))


def claim_stream(connection: Connection, message: Register) -> None:
    """Let a process go on with its stream, which is stored already.

    Raises:
        ProtocolError: ``forbidden``: it is that of another process.
    """
    is_it = _streams.c.uid == message.stream
    held = connection.scalar(select(_streams.c.secret).where(is_it)) or ""
    offered = hashed_secret(message.seat_secret)
    if held and not hmac.compare_digest(held, offered):
        raise ProtocolError(
            FORBIDDEN,
            f"expected the process that began stream {message.stream}, got one that does not know "
            "its secret",
        )
    if offered and not held:
        connection.execute(update(_streams).where(is_it).values(secret=offered))


def claim_seat(seat: Seat | None, message: Register) -> None:
    """Refuse who wants the rank of a process that is there, unless that process has started it.

    Args:
        seat: who sits there; ``None``: the place is free.
        message: who registers; it belongs to the run.

    Raises:
        ProtocolError: ``rank_taken``.
    """
    if seat is None or not seat.secret or seat.stream == message.stream:
        return
    # A process that starts the ranks may seem to be one of them until they come.
    if hmac.compare_digest(seat.secret, hashed_secret(message.seat_secret)):
        return
    raise ProtocolError(
        RANK_TAKEN,
        f"expected nobody on rank {message.rank.rank} of run {message.run.id}, but {seat.who} is; "
        "its place is free when it has ended",
    )


def may_deliver(claim: RunClaim, begin: OomBegin, owner: str) -> bool:
    """Whether a report of a run may come on a stream of another run.

    Args:
        claim: who holds the run that the report is of.
        begin: what is said of the report.
        owner: whose token the stream came with.
    """
    if claim.owner and claim.owner != owner:
        return False
    expected = proof_by_hash(claim.secret, begin.id)
    return not claim.secret or hmac.compare_digest(expected, begin.proof)

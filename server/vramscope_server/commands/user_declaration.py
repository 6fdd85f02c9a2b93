"""What a job itself has declared of a command, on all the ranks that it is for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from vramscope_protocol.commands import CommandSpec
from vramscope_protocol.errors import BAD_REQUEST, CONFLICT, VramscopeError
from vramscope_protocol.user_commands import UserCommand
from vramscope_server.commands.rank_names import rank_names


def user_command(name: str, ranks: Sequence[int], run: dict[str, Any]) -> UserCommand:
    """The declaration of a command of the job.

    Args:
        run: the run with its ranks, as the API has it.

    Raises:
        VramscopeError: ``bad_request`` if a rank does not declare it, ``conflict`` if ranks declare
            it differently.
    """
    by_rank = {
        rank["rank"]: rank["user_commands"] for rank in run["ranks"] if rank["rank"] in ranks
    }
    found = {
        rank: declared
        for rank, commands in by_rank.items()
        for declared in commands
        if declared["name"] == name
    }
    without = [rank for rank in ranks if rank not in found]
    if without:
        known = sorted({each["name"] for commands in by_rank.values() for each in commands})
        raise VramscopeError(
            BAD_REQUEST,
            f"no command named {name!r} on {rank_names(without)}; the job declares: "
            f"{', '.join(known[:16]) or 'none'}",
        )
    first = found[ranks[0]]
    other = [rank for rank in ranks if found[rank] != first]
    if other:
        raise VramscopeError(
            CONFLICT,
            f"{name} is not the same on all ranks: {rank_names(other)} and rank {ranks[0]} "
            "declare it differently",
        )
    return msgspec.convert(first, UserCommand)


def spec_of(command: UserCommand) -> CommandSpec:
    """It in the terms of built-in commands; its parameters are checked by its own declaration."""
    return CommandSpec(
        command.name,
        command.right,
        command.place,
        command.summary,
        same_step=command.same_step,
        changes_training=command.changes_training,
    )

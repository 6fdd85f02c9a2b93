"""Which ranks a command may be for, and whether they run it at the same step. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vramscope_protocol.commands import CommandSpec
from vramscope_protocol.errors import BAD_REQUEST, CONFLICT, VramscopeError
from vramscope_server.commands.rank_names import rank_names

CanPrepare = Callable[[int], "bool | None"]
"""Whether a rank prepares commands for a step; none if it is not connected."""


class Way(NamedTuple):
    """How the ranks run a command."""

    together: bool
    """All at the same step, or none; else each at its own next step."""
    note: str = ""
    """What whoever asked should know of it."""


def choose_way(
    spec: CommandSpec,
    ranks: Sequence[int],
    run: dict[str, Any],
    can_prepare: CanPrepare,
    *,
    dry_run: bool,
) -> Way:
    """Check the ranks against what the command needs, and say how they run it.

    Args:
        run: the run with its ranks, as the API has it.

    Raises:
        VramscopeError: ``bad_request`` for a part of a run, ``conflict`` for what the run's ranks
            cannot do at present.
    """
    if spec.whole_run:
        _check_all_ranks(spec, ranks, run)
    if not spec.same_step or len(ranks) == 1:
        return Way(together=False)
    obstacle = _obstacle(ranks, run, can_prepare)
    if obstacle and spec.changes_training:
        raise VramscopeError(
            CONFLICT, f"{spec.name} has to run at the same step on all ranks, but {obstacle}"
        )
    if dry_run:  # it changes nothing, so each rank may look when it comes by
        return Way(together=False)
    if obstacle:
        return Way(
            together=False,
            note=f"Each rank runs it at the end of its own next step, because {obstacle}.",
        )
    return Way(together=True)


def _check_all_ranks(spec: CommandSpec, ranks: Sequence[int], run: dict[str, Any]) -> None:
    known = [rank["rank"] for rank in run["ranks"]]
    if set(ranks) != set(known):
        raise VramscopeError(
            BAD_REQUEST,
            f"ranks: expected 'all', because {spec.name} is for a run as a whole, "
            f"got {len(ranks)} of {len(known)} ranks",
        )
    if not spec.changes_training:
        return  # what lets training go on should reach whoever is there
    if len(known) < run["world_size"]:
        raise VramscopeError(
            CONFLICT,
            f"{spec.name} needs every rank of the run: expected {run['world_size']}, "
            f"got {len(known)} that have registered",
        )
    for state, words in (("ended", "has ended"), ("lost", "is lost")):
        gone = [rank["rank"] for rank in run["ranks"] if rank["state"] == state]
        if gone:
            what = words if len(gone) == 1 else words.replace("has", "have").replace("is", "are")
            raise VramscopeError(
                CONFLICT, f"{spec.name} needs every rank of the run, but {rank_names(gone)} {what}"
            )


def _obstacle(ranks: Sequence[int], run: dict[str, Any], can_prepare: CanPrepare) -> str:
    """Why these ranks cannot agree on a step; empty if they can."""
    counts = {rank["rank"]: rank["steps_from_start"] for rank in run["ranks"]}
    unable = [rank for rank in ranks if can_prepare(rank) is False]
    if unable:
        return f"{rank_names(unable)} cannot wait for a certain step: vramscope is older there"
    later = [rank for rank in ranks if not counts.get(rank, False)]
    if later:
        return (
            f"the steps of {rank_names(later)} are not counted from the begin of training, "
            "so the same number is not the same step"
        )
    return ""

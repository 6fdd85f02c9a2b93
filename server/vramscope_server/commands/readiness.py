"""Whether the ranks of a command can be asked to get ready for a step by now. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from vramscope_server.commands.agreement_round import Verdict
from vramscope_server.commands.rank_names import capitalised, rank_names
from vramscope_server.commands.record import CommandRecord

Abilities = Mapping[int, "bool | None"]
"""For each rank whether it can wait for a step; None while it is not connected."""


def is_ready(able: Abilities, before: CommandRecord | None) -> bool:
    """Whether all ranks are there, and no other command of their run is under way."""
    return before is None and None not in able.values()


def why_never(
    record: CommandRecord, able: Abilities, before: CommandRecord | None, now_ns: int
) -> Verdict | None:
    """Why the ranks will not be asked any more; none while there is something to wait for."""
    unable = [rank for rank in able if able[rank] is False]
    if unable:
        who = _names(unable)
        return Verdict("drop", f"{who} cannot wait for a certain step: vramscope is older there.")
    if now_ns < record.deadline_ns:
        return None
    waited_s = (record.deadline_ns - record.created_ns) / 1e9
    if before is not None:
        reason = f"{before.name} was still under way after {waited_s:.0f} s."
    else:
        missing = [rank for rank in able if able[rank] is None]
        reason = f"{_names(missing or record.ranks)} could not be asked within {waited_s:.0f} s."
    return Verdict("drop", reason, tuple(record.ranks))


def _names(ranks: list[int]) -> str:
    return capitalised(rank_names(ranks)).rstrip(".")

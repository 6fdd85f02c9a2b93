"""The lives of one rank: which process took it over when, and how each of them ended. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

from vramscope_protocol.messages import RankInfo
from vramscope_server.store.runs import StreamRecord

MAX_SHOWN: Final = 32
"""Lives that the API names; of more the newest."""

Kind = Literal["start", "restart", "attach", "handover"]


class LifeOffset(NamedTuple):
    """Number of a life among those of its rank, and what to add to its step numbers."""

    life: int
    step_offset: int


def kinds(lives: Sequence[StreamRecord]) -> list[Kind]:
    """How each life began: ``start`` as the first, ``attach`` as the same process again,
    ``handover`` from one that let go of the rank, ``restart`` after one that ended."""
    found: list[Kind] = []
    if lives:
        found.append("start")
    found.extend(_kind(before, after.info) for before, after in pairwise(lives))
    return found


def _kind(before: StreamRecord, after: RankInfo) -> Kind:
    if is_same_process(before.info, after):
        return "attach"
    # A parent that starts the ranks itself stands for the first of them until it is there.
    let_go = before.end_reason == "detach" and after.restart_count <= before.info.restart_count
    return "handover" if let_go else "restart"


def is_same_process(before: RankInfo, after: RankInfo) -> bool:
    """Whether two registrations come from one process: its number may be used again."""
    if before.life and after.life:
        return before.life == after.life
    # Agents of 0.1 do not name their process.
    return (before.host, before.pid) == (after.host, after.pid)


def step_offsets(lives: Sequence[StreamRecord]) -> list[int]:
    """What to add to the step numbers of each life so that they rise over all of them.

    A process that counts anew goes on after the last step that the one before it had finished;
    one that goes on counting keeps the numbers.
    """
    offsets: list[int] = []
    offset = 0
    highest: int | None = None
    for stream in lives:
        first, last = stream.summary.first_step, stream.summary.step
        # Without a step so far it will most likely begin with 1.
        begins = 1 if first is None else first
        if highest is not None and begins + offset <= highest:
            offset = highest + 1 - begins
        offsets.append(offset)
        if first is not None and last is not None:
            highest = max(last + offset, highest or 0)
    return offsets


def life_offset(lives: Sequence[StreamRecord], uid: str) -> LifeOffset:
    """Where one life stands among all of its rank, oldest first."""
    life = next(i for i, stream in enumerate(lives) if stream.uid == uid)
    return LifeOffset(life, step_offsets(lives[: life + 1])[life])


def lives_payload(lives: Sequence[StreamRecord]) -> list[dict[str, Any]]:
    """The newest lives, oldest first, as the REST API has them."""
    rows = zip(range(len(lives)), lives, kinds(lives), step_offsets(lives), strict=True)
    return [
        {
            "life": life,
            "stream": stream.uid,
            "process": stream.info.life,
            "kind": kind,
            "host": stream.info.host,
            "pid": stream.info.pid,
            "started_ns": stream.info.started_ns or stream.created_ns,
            "last_seen_ns": stream.last_seen_ns,
            "ended_ns": stream.ended_ns,
            "end_reason": stream.end_reason,
            "end_text": stream.end_text,
            "exit_code": stream.exit_code,
            "first_step": stream.summary.first_step,
            "last_step": stream.summary.step,
            "step_offset": step_offset,
        }
        for life, stream, kind, step_offset in list(rows)[-MAX_SHOWN:]
    ]

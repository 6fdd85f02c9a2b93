"""Which line keeps host memory, as the agent of the process found out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from vramscope_analysis.diagnosis.finding import Culprit
from vramscope_analysis.evidence.run_evidence import RankEvidence


@dataclass(frozen=True)
class HostCulprit:
    """What keeps host memory.

    Args:
        culprit: the line and the holder.
        is_graph: nodes of an autograd graph pile up, whatever little their tensors take.
    """

    culprit: Culprit
    is_graph: bool


def explained(rank: RankEvidence) -> HostCulprit | None:
    """The line that keeps host memory; None is not known."""
    if rank.growth is None:
        return None
    found = [_of_group(told) for told in rank.growth.host_groups]
    known = [each for each in found if each is not None]
    if known:
        # Tensors that are kept with their history show as both: the graph is the larger part.
        return next((each for each in known if each.is_graph), known[0])
    for group in rank.growth.groups:
        held = [h for h in group.holders if h.kind == "autograd_graph" and h.is_growing]
        if held and (group.stack or held[0].stored_at):
            frame = held[0].stored_at or group.stack[0]
            return HostCulprit(
                Culprit(
                    frame.file,
                    frame.line,
                    frame.function,
                    tensors=group.tensors[:3],
                    held_by=held[0].chain,
                ),
                True,
            )
    return None


def _of_group(group: Mapping[str, Any]) -> HostCulprit | None:
    """The line of a group of host memory, which comes as plain JSON."""
    holders, size = group.get("holders"), group.get("bytes")
    if not isinstance(holders, list | tuple):
        return None
    for holder in cast(Any, holders):
        held = _mapping(holder)
        # Where it is put there is the line to change; where the container lives only names it.
        frame = _mapping(held.get("stored_at")) or _mapping(held.get("frame"))
        if not frame or held.get("is_growing") is False:
            continue
        line = frame.get("line")
        culprit = Culprit(
            str(frame.get("file") or ""),
            line if isinstance(line, int) else 0,
            str(frame.get("function") or ""),
            bytes=size if isinstance(size, int) else None,
            tensors=_texts(group.get("tensors"))[:3],
            held_by=_texts(held.get("chain")),
        )
        is_graph = "graph" in str(group.get("type")) or held.get("kind") == "autograd_graph"
        return HostCulprit(culprit, is_graph)
    return None


def _mapping(value: object) -> Mapping[str, Any]:
    return cast(Any, value) if isinstance(value, Mapping) else {}


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        return ()
    return tuple(str(value) for value in cast(Any, values))

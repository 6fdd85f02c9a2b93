"""Which line keeps host memory, as the agent of the process found out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from vramscope_analysis.diagnosis.finding import Culprit
from vramscope_analysis.evidence.run_evidence import RankEvidence


def explained(rank: RankEvidence) -> Culprit | None:
    """The line that keeps host memory, as the agent found out; None is not known."""
    if rank.growth is None:
        return None
    for told in rank.growth.host_groups:
        culprit = _culprit(told)
        if culprit is not None:
            return culprit
    for group in rank.growth.groups:
        # A graph that grows keeps its nodes on the host, whatever little it keeps on the device.
        held = [h for h in group.holders if h.kind == "autograd_graph" and h.is_growing]
        if held and group.stack:
            frame = group.stack[0]
            return Culprit(
                frame.file,
                frame.line,
                frame.function,
                tensors=group.tensors[:3],
                held_by=held[0].chain,
            )
    return None


def _culprit(group: Mapping[str, Any]) -> Culprit | None:
    """The line of a group of host memory, which comes as plain JSON."""
    holders, size = group.get("holders"), group.get("bytes")
    if not isinstance(holders, list | tuple):
        return None
    for holder in cast(Any, holders):
        held = _mapping(holder)
        frame = _mapping(held.get("frame"))
        if not frame:
            continue
        line = frame.get("line")
        return Culprit(
            str(frame.get("file") or ""),
            line if isinstance(line, int) else 0,
            str(frame.get("function") or ""),
            bytes=size if isinstance(size, int) else None,
            tensors=_texts(group.get("tensors"))[:3],
            held_by=_texts(held.get("chain")),
        )
    return None


def _mapping(value: object) -> Mapping[str, Any]:
    return cast(Any, value) if isinstance(value, Mapping) else {}


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        return ()
    return tuple(str(value) for value in cast(Any, values))

"""The answer to what grows, in the fields of the growth report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import to_builtins

from vramscope.growth.group_holders import Held
from vramscope.growth.groups import Group, rise
from vramscope.growth.host_tensors import HostGroup
from vramscope.growth.idle_tensors import IdleGroup
from vramscope.growth.live_blocks import Source, Stack
from vramscope.growth.waiting_blocks import WaitingGroup
from vramscope.holders.code_owner import Owner, owner_of
from vramscope.holders.holder import holder_report
from vramscope.size_text import size_text

MAX_STACK: Final = 24
_BACKWARD: Final = "_engine_run_backward"
"""The function of PyTorch under which a backward pass runs, where it runs on the same thread."""


def group_report(group: Group, source: Source, held: Held) -> dict[str, Any]:
    """One group as JSON."""
    in_backward = not source.stack or any(line.function == _BACKWARD for line in source.stack)
    return {
        "stack": _stack(source.stack),
        "in_backward": in_backward,
        "bytes": group.bytes,
        "count": group.count,
        "bytes_at_looks": group.bytes_at_looks,
        "counts_at_looks": group.counts_at_looks,
        "tensors": held.tensors,
        "holders": [holder_report(holder) for holder in held.holders],
        "garbage_bytes": _part(group.bytes, held),
    }


def waiting_report(group: WaitingGroup) -> dict[str, Any]:
    """Blocks of one source that wait for another stream as JSON."""
    return {
        "stack": _stack(group.stack),
        "bytes": group.bytes,
        "count": group.count,
        "stream": group.stream,
    }


def _stack(stack: Stack) -> list[Any]:
    lines = [line for line in stack if owner_of(line.file) is not Owner.OWN]
    return [to_builtins(line) for line in lines[:MAX_STACK]]


def garbage_report(groups: Sequence[Group], held: Sequence[Held]) -> dict[str, Any]:
    """What the collector would free of all that grows, as far as the samples tell."""
    found: dict[str, Any] = {}
    for group, each in zip(groups, held, strict=True):
        if each.garbage:
            found["bytes"] = found.get("bytes", 0) + _part(group.bytes, each)
            found["tensors"] = found.get("tensors", 0) + _part(group.count, each)
            circles = [holder.chain for holder in each.holders if holder.kind == "garbage"]
            found.setdefault("cycle", circles[0] if circles else [])
    return found


def _part(amount: int, held: Held) -> int:
    samples = held.found + len(held.missing)
    return amount * held.garbage // samples if samples else 0


def host_report(group: HostGroup) -> dict[str, Any]:
    """What one name holds more of on the host, as JSON."""
    return {
        "type": group.type,
        "bytes": group.bytes,
        "count": group.count,
        "tensors": group.tensors,
        "holders": [holder_report(group.holder)],
    }


def idle_report(group: IdleGroup) -> dict[str, Any]:
    """Tensors that no step works with as JSON: a group without looks."""
    return {
        "stack": [],
        "bytes": group.bytes,
        "count": group.count,
        "tensors": group.tensors,
        "holders": [holder_report(group.holder)],
        "category": group.category,
        "is_written": group.is_written,
    }


def growth_report(
    groups: Sequence[Mapping[str, Any]],
    *,
    steps: Sequence[int],
    live_bytes: Sequence[int],
    spent_ns: int,
    steps_watched: int,
    garbage: Mapping[str, Any],
    host_groups: Sequence[Mapping[str, Any]],
    held: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    complete: bool,
    waiting: Sequence[WaitingGroup] = (),
    holders_follow: bool = False,
) -> dict[str, Any]:
    """All of it as JSON."""
    return {
        "time_ns": time.time_ns(),
        "steps": list(steps),
        "live_bytes_at_looks": list(live_bytes),
        "groups": [dict(group) for group in groups],
        "host_groups": [dict(group) for group in host_groups],
        "held": [dict(group) for group in held],
        "waiting": [waiting_report(group) for group in waiting],
        "garbage": dict(garbage),
        "added_us_per_step": spent_ns / 1e3 / max(1, steps_watched),
        "complete": complete,
        "holders_follow": holders_follow,
        "notes": list(notes),
    }


def growth_words(groups: Sequence[Group], progress: str) -> str:
    """All of it in one sentence."""
    if not groups:
        return f"Nothing grows: {progress}."
    grown_bytes = sum(rise(group.bytes_at_looks) for group in groups)
    places = "one place" if len(groups) == 1 else f"{len(groups)} places"
    return f"{size_text(grown_bytes)} more from {places}: {progress}."

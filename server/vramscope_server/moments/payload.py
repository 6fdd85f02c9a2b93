"""Answers about moments as plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from vramscope_analysis.moments import (
    By,
    Category,
    GrowthBetween,
    Held,
    Moment,
    Node,
    RecordedMemory,
    Timeline,
)

Unit = Literal["us", "entry"]


def recording_payload(memory: RecordedMemory) -> dict[str, Any]:
    """What there is to ask about."""
    lifetimes = memory.lifetimes
    return {
        "device": memory.device,
        "devices": memory.snapshot.devices,
        "entries": memory.entries,
        "has_history": memory.has_history,
        "has_stacks": memory.has_stacks,
        "peak": memory.peak_moment,
        "peak_bytes": int(memory.live_bytes.max()),
        "end": memory.last_moment,
        "end_bytes": int(memory.live_bytes[-1]),
        "unseen_allocs": lifetimes.unseen_allocs,
        "unseen_frees": lifetimes.unseen_frees,
    }


def timeline_payload(memory: RecordedMemory, timeline: Timeline, by: By) -> dict[str, Any]:
    """A timeline, with where steps end and what was named in its window."""
    place = _placer(memory, timeline.unit)
    return {
        **recording_payload(memory),
        "by": by,
        "unit": timeline.unit,
        "start": timeline.start,
        "end_x": timeline.end,
        "moments": timeline.moments.tolist(),
        "x": timeline.x.tolist(),
        "total": timeline.total.tolist(),
        "reserved": timeline.reserved.tolist(),
        "groups": [
            {"label": g.label, "category": _word(g.category), "file": g.file}
            for g in timeline.groups
        ],
        "bytes": timeline.bytes.tolist(),
        "window_peak": timeline.peak,
        "ooms": [
            {"x": int(memory.time_us[i]) if timeline.unit == "us" else i, "moment": i, "size": size}
            for i, size in memory.out_of_memory
        ],
        "steps": [
            {
                "x": place(end.time_us, end.moment),
                "moment": end.moment,
                "step": end.step,
                "ordinal": end.ordinal,
            }
            for end in memory.step_ends
        ],
        "scopes": [
            {
                "name": scope.name,
                "start": place(scope.start_us, None),
                "end": place(scope.end_us, None),
            }
            for scope in memory.scopes
            if timeline.unit == "us"
            and scope.end_us >= timeline.start
            and scope.start_us <= timeline.end
        ][:1000],
    }


def _placer(memory: RecordedMemory, unit: Unit) -> Callable[[int, int | None], int]:
    """Where on the axis a time lies."""

    def place(time_us: int, moment: int | None) -> int:
        if unit == "us":
            return time_us
        return memory.nearest_moment(time_us) if moment is None else moment

    return place


def moment_payload(
    memory: RecordedMemory, moment: Moment, tree: list[Node], *, folded: bool
) -> dict[str, Any]:
    """A moment, with its tree of calls as columns."""
    return {
        **recording_payload(memory),
        "moment": moment.moment,
        "time_us": moment.time_us,
        "live_bytes": moment.live_bytes,
        "requested_bytes": moment.requested_bytes,
        "pending_bytes": moment.pending_bytes,
        "before_bytes": moment.before_bytes,
        "reserved_bytes": moment.reserved_bytes,
        "blocks": moment.blocks,
        "by_stack": [_held(held) for held in moment.by_stack],
        "by_line": [_held(held) for held in moment.by_line],
        "by_category": [_held(held) for held in moment.by_category],
        "by_size": [_held(held) for held in moment.by_size],
        "largest": [
            {
                "address": f"{block.address:#x}",
                "size_bytes": block.size_bytes,
                "requested_bytes": block.requested_bytes,
                "label": block.label,
                "category": block.category.word,
                "born": block.born,
                "age_us": block.age_us,
                "is_pending": block.is_pending,
            }
            for block in moment.largest
        ],
        "folded": folded,
        "tree": {
            "parent": [node.parent for node in tree],
            "name": [node.name for node in tree],
            "place": [node.place for node in tree],
            "file": [node.file for node in tree],
            "bytes": [node.bytes for node in tree],
            "blocks": [node.blocks for node in tree],
            "category": [_word(node.category) for node in tree],
            "small": [node.small for node in tree],
        },
    }


def growth_payload(growth: GrowthBetween) -> dict[str, Any]:
    """Growth between two moments."""
    return {
        "before_bytes": growth.before_bytes,
        "after_bytes": growth.after_bytes,
        "survived_bytes": growth.survived_bytes,
        "is_certain": growth.is_certain,
        "by_request": growth.by_request,
        "rows": [
            {
                "label": row.label,
                "category": row.category.word,
                "file": row.file,
                "before_bytes": row.before_bytes,
                "after_bytes": row.after_bytes,
                "before_blocks": row.before_blocks,
                "after_blocks": row.after_blocks,
                "survived_bytes": row.survived_bytes,
                "survived_blocks": row.survived_blocks,
            }
            for row in growth.rows
        ],
    }


def _held(held: Held) -> dict[str, Any]:
    return {
        "label": held.group.label,
        "category": _word(held.group.category),
        "file": held.group.file,
        "bytes": held.bytes,
        "blocks": held.blocks,
    }


def _word(category: Category | None) -> str | None:
    return None if category is None else category.word

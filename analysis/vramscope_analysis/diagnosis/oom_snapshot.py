"""Reports of the times out of memory that a recorded snapshot itself shows.

A recording has every request that was refused, and all that was live then. What it does not have is
left unknown: the driver's total, other processes, threads. A limit below the device is inferred: it
lies between the most that was held and the least that was refused.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vramscope_analysis.allocator import (
    AllocatorSettings,
    settings_from_snapshot,
    settings_text,
)
from vramscope_analysis.allocator.rounding import segment_size
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.free_pieces import free_pieces
from vramscope_analysis.moments.moment import Moment, moment_of
from vramscope_analysis.moments.recorded_memory import RecordedMemory
from vramscope_analysis.replay import Recording, infer_capacity
from vramscope_analysis.snapshot import Frame

MOST_REPORTS: Final = 8
_MOST_LINES: Final = 64
_MOST_SIZES: Final = 64


def oom_reports_of(memory: RecordedMemory, limit_bytes: int | None = None) -> list[OomReport]:
    """One report for each of the last refusals, oldest first.

    Args:
        memory: a device of a snapshot.
        limit_bytes: most that the process could have; None is what the recording shows.
    """
    refused = memory.out_of_memory[-MOST_REPORTS:]
    if refused and limit_bytes is None:
        limit_bytes = _inferred_limit(memory)
    rows = _step_rows(memory)
    return [_report(memory, entry, size, rows, limit_bytes) for entry, size in refused]


def _report(
    memory: RecordedMemory, entry: int, size: int, rows: Rows, limit_bytes: int | None
) -> OomReport:
    trace = memory.trace
    if trace is None:
        raise ValueError("expected trace entries, got none")
    moment = moment_of(memory, entry)
    settings = _settings(memory)
    segment = None if settings is None else segment_size(size, settings)
    time_ns = int(memory.time_us[entry]) * 1000
    ended = [end for end in memory.step_ends if end.moment < entry]
    later = [end for end in memory.step_ends if end.moment >= entry]
    numbers = [end.ordinal if end.step is None else end.step for end in (*ended, *later[:1])]
    free = int(trace.address[entry])
    frames = _frames(memory, int(trace.stack[entry]))
    return OomReport(
        id=f"entry {entry}",
        time_ns=time_ns,
        step=numbers[len(ended) - 1] if ended else 0,
        source="recording",
        request_bytes=size,
        segment_bytes=segment,
        allowed_bytes=limit_bytes,
        device_free_bytes=free,
        counters={
            "allocated_bytes.all.current": moment.live_bytes - moment.pending_bytes,
            "active_bytes.all.current": moment.live_bytes,
            "reserved_bytes.all.current": moment.reserved_bytes,
        },
        free_blocks=tuple(free_pieces(memory, entry)),
        by_stack=_lines(memory, moment),
        by_size=_sizes(memory, entry),
        by_category=_categories(memory, moment),
        steps=rows.before(len(ended)),
        settings=None if settings is None else settings_text(settings),
        threads=({"name": "recorded", "raised": True, "frames": frames},) if frames else (),
        recovered_step=numbers[-1] if later else None,
    )


def _inferred_limit(memory: RecordedMemory) -> int | None:
    try:
        recording = Recording.from_snapshot(memory.snapshot, memory.device)
        return infer_capacity(recording).allowed_bytes
    except ValueError:  # of no use to a replay
        return None


def _settings(memory: RecordedMemory) -> AllocatorSettings | None:
    try:
        return settings_from_snapshot(memory.snapshot.settings)
    except ValueError:  # such as PyTorch never has
        return None


def _step_rows(memory: RecordedMemory) -> Rows:
    """Floor and peak of each step, both as bytes of live blocks."""
    ends = memory.step_ends
    live, reserved = memory.live_bytes, memory.reserved_bytes
    floors: list[int] = []
    peaks: list[int] = []
    held: list[int] = []
    begin = 0
    for end in ends:
        at = end.moment + 1
        floors.append(int(live[at]))
        peaks.append(int(live[begin : at + 1].max()))
        held.append(int(reserved[begin : at + 1].max()))
        begin = at
    number = [end.ordinal if end.step is None else end.step for end in ends]
    return Rows(
        np.array([end.time_us * 1000 for end in ends], np.int64),
        {
            "allocated_bytes.all.current": np.array(floors, np.int64),
            "step.peak_allocated_bytes": np.array(peaks, np.int64),
            "step.peak_reserved_bytes": np.array(held, np.int64),
        },
        np.array(number, np.int64),
    )


def _frames(memory: RecordedMemory, stack: int) -> list[dict[str, Any]]:
    if stack < 0:
        return []
    return [_frame(memory.names.frame(index)) for index in memory.snapshot.stacks[stack]]


def _frame(frame: Frame) -> dict[str, Any]:
    return {"file": frame.filename, "line": frame.line, "function": frame.name}


def _lines(memory: RecordedMemory, moment: Moment) -> tuple[dict[str, Any], ...]:
    """What is live by stack, each with the user's line and what it is for."""
    rows: list[dict[str, Any]] = []
    by_label = {(s.label, s.file, s.category): s for s in memory.sources}
    for held in moment.by_stack[:_MOST_LINES]:
        group = held.group
        source = by_label.get((group.label, group.file, group.category or Category.UNKNOWN))
        if source is None or not source.file:
            continue
        place, _, function = source.line.rpartition(" ")
        line = place.rpartition(":")[2]
        rows.append(
            {
                "file": source.file,
                "line": int(line) if line.isdigit() else 0,
                "function": function,
                "bytes": held.bytes,
                "count": held.blocks,
                "category": source.category.word,
            }
        )
    return tuple(rows)


def _sizes(memory: RecordedMemory, entry: int) -> tuple[dict[str, Any], ...]:
    rows = memory.lifetimes.live_at(entry)
    requested, inverse, counts = np.unique(
        memory.lifetimes.requested[rows], return_inverse=True, return_counts=True
    )
    held = np.bincount(inverse.reshape(-1), memory.lifetimes.size[rows], len(requested))
    order = np.argsort(-held, kind="stable")[:_MOST_SIZES].tolist()
    return tuple(
        {"requested_bytes": int(requested[i]), "count": int(counts[i]), "bytes": int(held[i])}
        for i in order
    )


def _categories(memory: RecordedMemory, moment: Moment) -> dict[str, int]:
    names = {
        Category.PARAMETERS: "category.parameters_bytes",
        Category.GRADIENTS: "category.gradients_bytes",
        Category.OPTIMIZER: "category.optimizer_state_bytes",
    }
    return {
        names[category]: held.bytes
        for held in moment.by_category
        for category in [held.group.category]
        if category is not None and category in names
    }

"""What the list of segments says: free memory by pool and stream, live memory by size and stack."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from vramscope.holders.code_owner import owner_of
from vramscope.memory_map.look import FREE_STATE

MAX_POOLS: Final = 200
MAX_SIZES: Final = 64
MAX_STACKS: Final = 200
MAX_STACK_LINES: Final = 24
MAX_PINNING: Final = 8
PINNED_BYTES: Final = 1 << 20
"""Live blocks pin a segment that has a free piece as large as this."""

_DEFAULT_POOL: Final = (0, 0)

Segment = Mapping[str, Any]
Rows = list[dict[str, Any]]


def free_blocks(segments: Iterable[Segment]) -> Rows:
    """Free memory of each pool and stream, most first; ``returnable_bytes`` could go back at once.

    ``largest_segment_bytes`` is the largest segment that live blocks keep from being whole again.

    Args:
        segments: as ``torch.cuda.memory_snapshot()`` has them.
    """
    found: dict[tuple[str, int], _FreeMemory] = {}
    for segment in segments:
        blocks: Sequence[Mapping[str, Any]] = segment["blocks"]
        free = [int(block["size"]) for block in blocks if block["state"] == FREE_STATE]
        if free:
            key = (_pool_name(segment), int(segment.get("stream", 0)))
            found.setdefault(key, _FreeMemory()).add(segment, free, blocks)
    rows: Rows = [
        {"pool": pool, "stream": stream, **each.row()} for (pool, stream), each in found.items()
    ]
    return sorted(rows, key=lambda row: -row["bytes"])[:MAX_POOLS]


class _FreeMemory:
    """Of one pool and stream."""

    def __init__(self) -> None:
        self._bytes = self._count = self._largest_bytes = self._returnable_bytes = 0
        self._largest_segment_bytes = 0
        self._pinning: dict[int, list[int]] = {}

    def add(self, segment: Segment, free: list[int], blocks: Sequence[Mapping[str, Any]]) -> None:
        self._bytes += sum(free)
        self._count += len(free)
        largest_bytes = max(free)
        self._largest_bytes = max(self._largest_bytes, largest_bytes)
        if len(free) == len(blocks):
            self._returnable_bytes += int(segment["total_size"])
        elif largest_bytes >= PINNED_BYTES:
            if not segment.get("is_expandable"):  # those grow: what they served is not known
                self._largest_segment_bytes = max(
                    self._largest_segment_bytes, int(segment["total_size"])
                )
            for block in blocks:
                if block["state"] != FREE_STATE:
                    _add(self._pinning, block)

    def row(self) -> dict[str, Any]:
        return {
            "bytes": self._bytes,
            "count": self._count,
            "largest_bytes": self._largest_bytes,
            "returnable_bytes": self._returnable_bytes,
            "largest_segment_bytes": self._largest_segment_bytes,
            "pinned_by": _size_rows(self._pinning)[:MAX_PINNING],
        }


def live_by_size(segments: Iterable[Segment]) -> Rows:
    """Live blocks by what was requested, most bytes first; the last row is the rest, if any."""
    found: dict[int, list[int]] = {}
    for segment in segments:
        for block in segment["blocks"]:
            if block["state"] != FREE_STATE:
                _add(found, block)
    rows = _size_rows(found)
    rest = rows[MAX_SIZES:]
    if rest:
        rows = rows[:MAX_SIZES]
        count = sum(row["count"] for row in rest)
        rest_bytes = sum(row["bytes"] for row in rest)
        rows.append({"requested_bytes": None, "count": count, "bytes": rest_bytes})
    return rows


def live_by_stack(segments: Iterable[Segment], deadline_s: float) -> tuple[Rows, bool]:
    """Live memory by the stack that it was allocated at, most first, where stacks were recorded.

    Args:
        segments: with ``frames`` at their blocks.
        deadline_s: when to stop, by ``time.perf_counter``.

    Returns:
        The rows, none if no block has a stack; and whether every block was looked at.
    """
    found: dict[tuple[tuple[Any, ...], ...], list[int]] = {}
    is_complete = True
    has_stacks = False
    for segment in segments:
        if time.perf_counter() > deadline_s:
            is_complete = False
            break
        for block in segment["blocks"]:
            if block["state"] != FREE_STATE:
                frames = block.get("frames") or ()
                has_stacks = has_stacks or bool(frames)
                key = tuple(
                    [(f["filename"], f["line"], f["name"]) for f in frames[:MAX_STACK_LINES]]
                )
                sums = found.setdefault(key, [0, 0])
                sums[0] += 1
                sums[1] += int(block["size"])
    if not has_stacks:
        return [], is_complete
    order = sorted(found.items(), key=lambda item: -item[1][1])[:MAX_STACKS]
    return [_stack_row(key, *sums) for key, sums in order], is_complete


def _stack_row(key: tuple[tuple[Any, ...], ...], count: int, size_bytes: int) -> dict[str, Any]:
    lines = [{"file": file, "line": line, "function": name} for file, line, name in key]
    return {**_user_line(lines), "bytes": size_bytes, "count": count, "frames": lines}


def _add(found: dict[int, list[int]], block: Mapping[str, Any]) -> None:
    """Count a live block among those of its size."""
    size_bytes = int(block["size"])
    sums = found.setdefault(int(block.get("requested_size", size_bytes)), [0, 0])
    sums[0] += 1
    sums[1] += size_bytes


def _size_rows(found: Mapping[int, list[int]]) -> Rows:
    order = sorted(found.items(), key=lambda item: (-item[1][1], item[0]))
    return [
        {"requested_bytes": size, "count": count, "bytes": total} for size, (count, total) in order
    ]


def _user_line(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The innermost line of the job's own; else the innermost; else none."""
    if not lines:
        return {"file": "", "line": 0, "function": ""}
    return min(lines, key=lambda line: owner_of(line["file"]))


def _pool_name(segment: Segment) -> str:
    kind = str(segment.get("segment_type", "large"))
    pool = tuple(segment.get("segment_pool_id", _DEFAULT_POOL))
    return kind if pool == _DEFAULT_POOL else f"{kind} {pool}"

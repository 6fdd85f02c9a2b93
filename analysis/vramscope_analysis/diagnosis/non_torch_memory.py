"""The finding ``non_torch_memory``: this process holds memory beside PyTorch's allocator.

A CUDA context and its libraries take some hundred MiB, once. What rises again and again is made by
somebody: communicators of new process groups, handles, or a library with an allocator of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.head_room import head_room, outside_bytes
from vramscope_analysis.diagnosis.words import GIB, MIB, count_text, fitting, share_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "non_torch_memory"
WARM_UP_STEPS: Final = 20
MIN_RISES: Final = 3
MIN_GROWTH_BYTES: Final = 64 * MIB
MIN_GROWTH_SHARE: Final = 0.001
LARGE_SHARE: Final = 0.1
LARGE_BYTES: Final = 2 * GIB
TIGHT_SHARE: Final = 0.05
_NCCL: Final = "NCCL"
_NOT_KNOWN: Final = "not known"


@dataclass(frozen=True)
class Level:
    """What was held outside of PyTorch from one time on.

    Args:
        step: steps that were over then; None is not known.
        bytes: all of it.
        parts: by name.
    """

    step: int | None
    bytes: int
    parts: Mapping[str, int]


def non_torch_memory(rank: RankEvidence) -> list[Finding]:
    """Judge what the process holds outside of PyTorch: whether it grows, and whether it is much."""
    levels = levels_of(rank)
    growing = _growing(rank, levels)
    return growing or _large(rank)


def levels_of(rank: RankEvidence) -> list[Level]:
    """The lasting levels, oldest first, as the agent told each change of them."""
    levels: list[Level] = []
    for event in rank.events:
        size, parts = event.data.get("bytes"), event.data.get("parts")
        if event.kind == "outside" and isinstance(size, int) and isinstance(parts, list):
            levels.append(Level(event.step, size, _by_name(cast(Any, parts))))
    return levels


def _by_name(parts: list[Any]) -> dict[str, int]:
    named: dict[str, int] = {}
    for part in parts:
        told: Mapping[str, Any] = cast(Any, part) if isinstance(part, Mapping) else {}
        name, size = told.get("name"), told.get("bytes")
        if isinstance(name, str) and isinstance(size, int):
            named[name] = named.get(name, 0) + size
    return named


def _growing(rank: RankEvidence, levels: list[Level]) -> list[Finding]:
    """Rises that go on after warm-up, to levels that were never reached before."""
    # Whoever was attached to late has its first level late.
    warm = WARM_UP_STEPS + ((levels[0].step or 0) if levels else 0)
    before = [level for level in levels if (level.step or 0) <= warm]
    after = [level for level in levels if (level.step or 0) > warm]
    if not after:
        return []
    highest = base = before[-1].bytes
    rises: list[Level] = []
    for level in after:
        if level.bytes > highest:
            highest = level.bytes
            rises.append(level)
    grown = after[-1].bytes - base
    least = max(MIN_GROWTH_BYTES, MIN_GROWTH_SHARE * (rank.total_bytes or 0))
    if len(rises) < MIN_RISES or grown < least or after[-1].bytes < 0.9 * highest:
        return []
    name, share = _what_grew(before[-1], after[-1], grown)
    since, last = rises[0].step, rises[-1].step
    what = "memory outside of PyTorch" if name == _NOT_KNOWN else f"memory of {name}"
    return [
        Finding(
            KIND,
            "warning",
            fitting(
                f"{size_text(grown)} of {what} came in {count_text(len(rises), 'rise')}, "
                f"steps {count_text(since or 0)} to {count_text(last or 0)}."
            ),
            {
                "grown_bytes": grown,
                "outside_bytes": after[-1].bytes,
                "rises": len(rises),
                "since_step": since,
                "part": name,
                "part_share": round(share, 3),
                "parts": dict(after[-1].parts),
            },
            0.9 if name != _NOT_KNOWN else 0.7,
            remedies=_remedies(name, grown),
            detail="PyTorch's allocator does not know of it: its reserved memory did not rise "
            "with it, and emptying the cache does not give it back.",
            subject=name,
            since_step=since,
        )
    ]


def _what_grew(before: Level, after: Level, grown: int) -> tuple[str, float]:
    """The part that most of the growth is of, and how much of it."""
    risen = {name: size - before.parts.get(name, 0) for name, size in after.parts.items()}
    name = max(risen, key=lambda each: risen[each], default=_NOT_KNOWN)
    share = risen.get(name, 0) / grown
    return (name, share) if share >= 0.5 else (_NOT_KNOWN, share)


def _remedies(name: str, grown: int) -> tuple[Remedy, ...]:
    if _NCCL not in name:
        return ()
    return (
        Remedy(
            "make process groups once, and reuse them",
            "Each group has communicators of its own, with their buffers on every device.",
            grown,
        ),
        Remedy(
            "end groups that are not used any more",
            "Their communicators give their buffers back.",
            grown,
            "",
            "torch.distributed.destroy_process_group(group)",
        ),
        Remedy(
            "use smaller buffers for communication",
            "A communicator's buffers are as large as this says.",
            None,
            "collectives may become slower",
            "NCCL_BUFFSIZE=1048576",
        ),
    )


def _large(rank: RankEvidence) -> list[Finding]:
    total_bytes = rank.total_bytes or 0
    held_bytes = outside_bytes(rank)
    if total_bytes <= 0 or held_bytes < max(LARGE_BYTES, LARGE_SHARE * total_bytes):
        return []
    room = head_room(rank)
    is_tight = room is not None and room.left_share < TIGHT_SHARE
    parts = sorted(
        ((str(part.get("name")), part["bytes"]) for part in rank.outside if part.get("bytes")),
        key=lambda part: -part[1],
    )
    most = ", ".join(f"{name} {size_text(size)}" for name, size in parts[:2])
    return [
        Finding(
            KIND,
            "warning" if is_tight else "info",
            fitting(
                f"{size_text(held_bytes)} are outside of PyTorch's allocator: {most}.",
                f"{size_text(held_bytes)} are outside of PyTorch's allocator.",
            ),
            {
                "outside_bytes": held_bytes,
                "total_bytes": total_bytes,
                "parts": dict(parts),
                "series": "device.process_bytes",
            },
            0.9,
            remedies=_remedies(parts[0][0], parts[0][1]) if parts else (),
            detail=f"{share_text(held_bytes / total_bytes)} of the device: contexts, libraries "
            "and communicators. It is not PyTorch's to give back.",
        )
    ]

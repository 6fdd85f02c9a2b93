"""The finding ``retention`` of memory that is free, and waits for another stream.

A block that a second stream has used (``record_stream``, collectives) is only free again when an
event of that stream has passed and the allocator has noticed. A job whose host runs ahead of its
device allocates more meanwhile: tensors need less than is active.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Culprit, Finding, Remedy
from vramscope_analysis.diagnosis.growth_group import user_line
from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.diagnosis.words import MIB, count_text, fitting, share_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "retention"
SUBJECT: Final = "cross-stream reuse"
WINDOW_STEPS: Final = 50
WARM_UP_STEPS: Final = 20
WAITING_SHARE: Final = 0.1
MIN_BYTES: Final = 64 * MIB
TIGHT_SHARE: Final = 0.1
HELD_BY: Final = "an event of another stream"
_AVOIDS_ON_REQUEST: Final = tuple((2, minor) for minor in range(4, 8))
"""Releases that know the variable; later ones do so without it."""


def delayed_reuse(rank: RankEvidence) -> list[Finding]:
    """Judge how much memory at the peak was freed already, and could not be used again."""
    rows = rank.steps.after(max(WARM_UP_STEPS, len(rank.steps) - WINDOW_STEPS))
    active = rows.numbers("step.peak_active_bytes")
    waiting = active - rows.numbers("step.peak_allocated_bytes")
    known = np.isfinite(waiting)
    if known.sum() < WINDOW_STEPS:
        return []
    waiting_bytes, active_bytes = int(np.median(waiting[known])), int(np.median(active[known]))
    limit_bytes = allocator_limit(rank)
    if waiting_bytes < max(MIN_BYTES, WAITING_SHARE * active_bytes):
        return []
    highest = float(active[known].max())
    culprits = waiting_culprits(rank)
    is_tight = limit_bytes is not None and limit_bytes - highest < TIGHT_SHARE * limit_bytes
    return [
        Finding(
            KIND,
            "warning" if is_tight else "info",
            fitting(
                f"{size_text(waiting_bytes)} at the peak were free already, and waited for "
                "another stream."
            ),
            {
                "series": "step.peak_active_bytes",
                "waiting_bytes": waiting_bytes,
                "active_bytes": active_bytes,
                "limit_bytes": limit_bytes,
                "steps": int(known.sum()),
            },
            0.85,
            remedies=_remedies(rank, waiting_bytes),
            culprits=culprits,
            detail=f"{share_text(waiting_bytes / active_bytes)} of what was active at the peaks of "
            f"the last {count_text(int(known.sum()), 'step')}: blocks of another stream "
            f"(record_stream, collectives). Their tensors are gone.{_line_text(culprits)}",
            subject=SUBJECT,
        )
    ]


def waiting_culprits(rank: RankEvidence) -> tuple[Culprit, ...]:
    """Lines that allocated what waited when an agent looked, the largest first; empty: not known.

    Args:
        rank: what is known of it, with its agent's report.
    """
    groups = () if rank.growth is None else rank.growth.waiting
    found: dict[tuple[str, int], Culprit] = {}
    for group in groups:
        line = user_line(group.stack)
        if line is None:
            continue
        known = found.get((line.file, line.line))
        found[line.file, line.line] = Culprit(
            line.file,
            line.line,
            line.function,
            bytes=group.bytes + ((known and known.bytes) or 0),
            held_by=(HELD_BY,),
        )
    return tuple(sorted(found.values(), key=lambda culprit: -(culprit.bytes or 0)))


def _line_text(culprits: tuple[Culprit, ...]) -> str:
    if not culprits:
        return ""
    first = culprits[0]
    place = f"{PurePath(first.file).name}:{first.line}"
    return f" Most of them: allocated at {place}, used on another stream."


def _remedies(rank: RankEvidence, waiting_bytes: int) -> tuple[Remedy, ...]:
    remedies = [
        Remedy(
            "keep a reference until the other stream is done, in place of record_stream",
            "The block is free when the reference goes, not when an event has been noticed.",
            waiting_bytes,
            "a wait for the stream at a place of your own choice",
        ),
        Remedy(
            "keep the host from running ahead of the device",
            "Fewer blocks wait at the same time, and the peak varies less.",
            None,
            "a synchronisation now and then",
        ),
    ]
    has_nccl = any("NCCL" in str(part.get("name")) for part in rank.outside)
    if has_nccl and _release(rank.torch_version) in _AVOIDS_ON_REQUEST:
        remedies.append(
            Remedy(
                "let collectives keep references in place of record_stream",
                "What they used is free again when their work has been waited for.",
                None,
                "takes effect at the next start",
                "TORCH_NCCL_AVOID_RECORD_STREAMS=1",
            )
        )
    return tuple(remedies)


def _release(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)

"""The finding ``other_process``: memory of the device that other processes hold.

Two kinds. Somebody else's process takes what this job could have. Or it is a rank of this very job,
which has its memory on another device and a context here: it loaded a checkpoint, or pinned memory,
before it had chosen its device.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.head_room import HeadRoom, head_room
from vramscope_analysis.diagnosis.words import MIB, count_text, fitting, share_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

KIND: Final = "other_process"
STRANGERS: Final = "other processes"
OWN_RANKS: Final = "ranks of this job"
MIN_BYTES: Final = 256 * MIB
"""Less than this is a desktop, or a context that does nothing."""
MIN_SHARE: Final = 0.05
TIGHT_SHARE: Final = 0.1
_RANK: Final = re.compile(r"rank (\d+) of this job")


@dataclass(frozen=True)
class Other:
    """A process that is not this one.

    Args:
        pid: as the driver has it.
        command: name of its program; empty is not known.
        bytes: what it holds of the device.
        rank: its rank in this job; None if it is of another.
    """

    pid: int
    command: str
    bytes: int
    rank: int | None

    @property
    def words(self) -> str:
        """As a person would say it: ``pid 4123, jupyter``."""
        return f"pid {self.pid}, {self.command}" if self.command else f"pid {self.pid}"


def other_process(run: RunEvidence) -> list[Finding]:
    """Judge what else is on the device of each rank."""
    reserved = {
        rank.rank: rank.samples.last("reserved_bytes.all.current")
        or rank.steps.last("reserved_bytes.all.current")
        for rank in run.ranks
    }
    homes = {rank.rank: rank.device_uuid for rank in run.ranks if rank.device_uuid}
    findings: list[Finding] = []
    for rank in run.ranks:
        others = others_of(rank)
        findings += _strangers(rank, [other for other in others if other.rank is None])
        findings += _own_ranks(rank, others, homes, reserved)
    return findings


def others_of(rank: RankEvidence) -> list[Other]:
    """The other processes on its device whose memory is known, most of it first."""
    found = [_other(each) for each in rank.processes if not each.get("own")]
    return sorted((each for each in found if each is not None), key=lambda each: -each.bytes)


def _other(process: Mapping[str, Any]) -> Other | None:
    pid, size, command = process.get("pid"), process.get("bytes"), str(process.get("command") or "")
    if not isinstance(pid, int) or not isinstance(size, int) or not 0 <= size < 1 << 62:
        return None
    rank = _RANK.search(command)
    return Other(pid, command, size, None if rank is None else int(rank[1]))


def _strangers(rank: RankEvidence, others: list[Other]) -> list[Finding]:
    held_bytes = sum(other.bytes for other in others)
    total_bytes = rank.total_bytes or 0
    if total_bytes <= 0 or held_bytes < max(MIN_BYTES, MIN_SHARE * total_bytes):
        return []
    free_bytes = rank.samples.last("device.free_bytes")
    room = head_room(rank)
    left = [free_bytes] if free_bytes is not None else []
    if room is not None:
        left.append(max(room.left_bytes, 0))
    is_tight = bool(left) and min(left) < TIGHT_SHARE * total_bytes
    largest = others[0]
    whom = (
        f"another process ({largest.words})"
        if len(others) == 1
        else f"{count_text(len(others))} other processes (most: {largest.words})"
    )
    rest = "" if free_bytes is None else f"; {size_text(free_bytes)} are left"
    return [
        Finding(
            KIND,
            "warning" if is_tight else "info",
            fitting(
                f"{size_text(held_bytes)} belong to {whom}{rest}.",
                f"{size_text(held_bytes)} belong to pid {largest.pid} and others{rest}.",
            ),
            {
                "held_bytes": held_bytes,
                "total_bytes": total_bytes,
                "free_bytes": free_bytes,
                "processes": [_plain(other, {}) for other in others[:16]],
            },
            remedies=_stranger_remedies(rank, others, held_bytes, room),
            detail=f"{share_text(held_bytes / total_bytes)} of the device. PyTorch cannot have it, "
            "and emptying its cache does not give it back.",
            subject=STRANGERS,
            ranks=(rank.rank,),
        )
    ]


def _stranger_remedies(
    rank: RankEvidence, others: list[Other], held_bytes: int, room: HeadRoom | None
) -> tuple[Remedy, ...]:
    which = "it" if len(others) == 1 else "them"
    remedies = [
        Remedy(
            f"end {which}, or move one of the jobs to another device",
            "The device then belongs to this job alone.",
            held_bytes,
        )
    ]
    if room is not None and rank.limit_bytes is None and rank.total_bytes:
        # So that the next growth of this job fails here, and not in the neighbour. Rounded up: a
        # small job on a large device would be told to do with nothing.
        fraction = min(math.ceil(110 * room.needed_bytes / rank.total_bytes) / 100, 1.0)
        if fraction < 0.9:
            remedies.append(
                Remedy(
                    "give each job its own part of the device",
                    f"This job needs {size_text(room.needed_bytes)} at its peaks: a cap, or a "
                    "slice (MIG) of at least that size, keeps the jobs from each other.",
                    None,
                    "what is above the cap fails at once",
                    f"torch.cuda.set_per_process_memory_fraction({fraction:.2f})",
                )
            )
    return tuple(remedies)


def _own_ranks(
    rank: RankEvidence,
    others: list[Other],
    homes: Mapping[int, str],
    reserved: Mapping[int, int | None],
) -> list[Finding]:
    """Ranks that train on another device, and hold memory of this one too."""
    strays = [
        other
        for other in others
        if other.rank is not None
        and other.bytes >= MIN_BYTES // 4
        and _trains_elsewhere(rank, other, homes.get(other.rank, ""), reserved.get(other.rank) or 0)
    ]
    if not strays:
        return []
    held_bytes = sum(stray.bytes for stray in strays)
    if len(strays) == 1:
        who = f"Rank {strays[0].rank} of this job (pid {strays[0].pid}) also holds"
    else:
        who = f"{count_text(len(strays))} other ranks of this job also hold"
    return [
        Finding(
            KIND,
            "warning",
            fitting(f"{who} {size_text(held_bytes)} on the device of rank {rank.rank}."),
            {
                "held_bytes": held_bytes,
                "processes": [_plain(other, reserved) for other in strays[:64]],
            },
            0.9,
            remedies=(
                Remedy(
                    "choose the device before anything else uses CUDA",
                    "A checkpoint that is loaded, or memory that is pinned, before that makes a "
                    "context on the first device.",
                    held_bytes,
                    "",
                    "torch.cuda.set_device(local_rank)",
                ),
                Remedy(
                    "load checkpoints onto the host",
                    "Without map_location tensors go to the device that they were saved from.",
                    None,
                    "",
                    'torch.load(file, map_location="cpu")',
                ),
            ),
            detail="Their own memory is on other devices; here it is a CUDA context and what was "
            "loaded on the way.",
            subject=OWN_RANKS,
            ranks=(rank.rank,),
        )
    ]


def _trains_elsewhere(rank: RankEvidence, other: Other, home: str, reserved_bytes: int) -> bool:
    if home and rank.device_uuid:
        return home != rank.device_uuid
    return reserved_bytes > other.bytes  # its own memory is more than what it has here


def _plain(other: Other, reserved: Mapping[int, int | None]) -> dict[str, Any]:
    plain: dict[str, Any] = {"pid": other.pid, "command": other.command, "bytes": other.bytes}
    if other.rank is not None:
        plain |= {"rank": other.rank, "reserved_bytes": reserved.get(other.rank)}
    return plain

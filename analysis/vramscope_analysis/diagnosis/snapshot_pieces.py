"""The finding ``fragmentation`` of a recording: what was reserved and never needed at once.

Where the pieces lie tells what kind it is: between blocks that stay for good, on streams of their
own, or between blocks of changing sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.settings_advice import refuted, settings_remedies
from vramscope_analysis.diagnosis.words import MIB, fitting, share_text, size_text
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_analysis.moments.free_pieces import free_pieces, ranges_at
from vramscope_analysis.moments.recorded_memory import RecordedMemory

KIND: Final = "fragmentation"
LARGE_SHARE: Final = 0.25
LARGE_BYTES: Final = 64 * MIB
MOST_POOLS: Final = 16

Pools = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Pieces:
    """The moment at which most was reserved.

    Args:
        moment: that moment.
        reserved_bytes: held then.
        live_bytes: in blocks then.
        highest_bytes: most in blocks at any moment of the recording.
        requested_bytes: what was asked for of the blocks then.
        pools: free memory then, by pool and stream.
    """

    moment: int
    reserved_bytes: int
    live_bytes: int
    highest_bytes: int
    requested_bytes: int
    pools: Pools

    @property
    def private_bytes(self) -> int:
        """Free memory of graphs and pools of the job, which serves nothing else."""
        return sum(int(pool["bytes"]) for pool in self.pools if pool["pool"] == "private")

    @property
    def lost_bytes(self) -> int:
        """Reserved and never needed at once."""
        return max(self.reserved_bytes - self.highest_bytes - self.private_bytes, 0)

    @property
    def rounding_bytes(self) -> int:
        """How much larger blocks were than what was asked for."""
        return self.live_bytes - self.requested_bytes

    @property
    def largest_bytes(self) -> int:
        """The largest free piece, private pools left out."""
        sizes = [int(pool["largest_bytes"]) for pool in self.pools if pool["pool"] != "private"]
        return max(sizes, default=0)

    @property
    def main_stream_bytes(self) -> int:
        """Free memory of the stream that has most of what is free."""
        by_stream: dict[int, int] = {}
        for pool in self.pools:
            if pool["pool"] != "private":
                stream = int(pool["stream"])
                by_stream[stream] = by_stream.get(stream, 0) + int(pool["bytes"])
        return max(by_stream.values(), default=0)


def pieces_of(memory: RecordedMemory) -> Pieces:
    """What was free when most was reserved, the first such moment."""
    moment = int(np.argmax(memory.reserved_bytes)) - 1
    live = memory.lifetimes.live_at(moment)
    return Pieces(
        moment=moment,
        reserved_bytes=int(memory.reserved_bytes[moment + 1]),
        live_bytes=int(memory.live_bytes[moment + 1]),
        highest_bytes=int(memory.live_bytes.max()),
        requested_bytes=int(memory.lifetimes.requested[live].sum()),
        pools=free_pieces(memory, moment)[:MOST_POOLS],
    )


def snapshot_pieces(
    memory: RecordedMemory, settings: str | None, trials: Sequence[SettingsTrial]
) -> list[Finding]:
    """Judge what lay in pieces when most was reserved.

    Args:
        memory: a device of a snapshot with a history.
        settings: as in ``PYTORCH_CUDA_ALLOC_CONF``; None is not known.
        trials: what the replay of the recording said of other settings.
    """
    if not memory.has_history:
        return []  # one moment: what was needed before it is not known
    pieces = pieces_of(memory)
    remedies = settings_remedies(settings, trials)
    is_large = pieces.lost_bytes >= max(LARGE_BYTES, LARGE_SHARE * pieces.reserved_bytes)
    if not is_large and not remedies:
        return []
    recorded = next((trial for trial in trials if trial.is_recorded), None)
    has_failed = recorded is not None and (recorded.retries > 0 or recorded.runs_out)
    lost, of = size_text(pieces.lost_bytes), size_text(pieces.reserved_bytes)
    best = remedies[0].predicted_bytes if remedies else None
    if best:
        summary = (
            f"{lost} of {of} reserved were never needed at once; {size_text(best)} can be had."
        )
    else:
        summary = f"{lost} of {of} reserved were never needed at once: they lie in pieces."
    kind, words = _kind(memory, pieces)
    return [
        Finding(
            KIND,
            "warning" if has_failed and remedies else "info",
            fitting(summary),
            {
                "reserved_bytes": pieces.reserved_bytes,
                "highest_bytes": pieces.highest_bytes,
                "in_pieces_bytes": pieces.lost_bytes,
                "rounding_bytes": pieces.rounding_bytes,
                "private_pool_bytes": pieces.private_bytes,
                "largest_free_bytes": pieces.largest_bytes,
                "utilisation_at_peak": round(
                    pieces.highest_bytes / max(pieces.reserved_bytes, 1), 4
                ),
                "shape": kind,
                "pools": [dict(pool) for pool in pieces.pools],
                "does_not_help": list(refuted(settings, trials)),
            },
            0.95 if remedies else 0.75,
            remedies=(*remedies, *_of_kind(kind)),
            detail=words,
        )
    ]


def _kind(memory: RecordedMemory, pieces: Pieces) -> tuple[str, str]:
    """Where most of the pieces lie, and that in a sentence."""
    free = sum(int(pool["bytes"]) for pool in pieces.pools if pool["pool"] != "private")
    largest = f"The largest free piece was {size_text(pieces.largest_bytes)}"
    if not free:
        return "", f"{largest}."
    elsewhere = free - pieces.main_stream_bytes
    if elsewhere >= 0.5 * free:
        return "streams", (
            f"{largest}; {share_text(elsewhere / free)} of what was free belong to other streams, "
            "which share nothing."
        )
    lasting = _pinned_share(memory, pieces)
    if lasting is not None and lasting >= 0.5:
        return "lasting blocks", (
            f"{largest}; {share_text(lasting)} of what was stranded lie beside blocks that stayed "
            "to the end of the recording."
        )
    return "sizes", f"{largest}; what was free lies between blocks of changing sizes."


def _pinned_share(memory: RecordedMemory, pieces: Pieces) -> float | None:
    """Of what was stranded, the part in segments that lasting blocks alone kept."""
    lifetimes = memory.lifetimes
    live = lifetimes.live_at(pieces.moment)
    order = np.argsort(lifetimes.address[live])
    live = live[order]
    starts = lifetimes.address[live].astype(np.int64)
    lasts = lifetimes.completed[live] >= lifetimes.entries
    stranded = pinned = 0
    for held in ranges_at(memory, pieces.moment):
        first, last = np.searchsorted(starts, (held.start, held.end))
        if first == last or held.pool == "private":
            continue
        free = held.end - held.start - int(lifetimes.size[live[first:last]].sum())
        stranded += free
        pinned += free if lasts[first:last].all() else 0
    return pinned / stranded if stranded else None


def _of_kind(kind: str) -> tuple[Remedy, ...]:
    if kind == "lasting blocks":
        return (
            Remedy(
                "allocate what stays before the first step",
                "Blocks that last then lie beside each other, and not in the segments of steps.",
            ),
        )
    if kind == "streams":
        return (
            Remedy(
                "use fewer streams for work that allocates",
                "Each stream has blocks of its own, and none can use those of another.",
            ),
        )
    return ()

"""The finding ``fragmentation`` of a recording: what was reserved and never needed at once.

Where the pieces lie tells what kind it is: between blocks that stay for good, on streams of their
own, or between blocks of changing sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.fragmentation_evidence import (
    MOST_POOLS,
    asked_text,
    pool_row,
    replayed,
    request_numbers,
)
from vramscope_analysis.diagnosis.piece_shape import shape_of, shape_remedies
from vramscope_analysis.diagnosis.settings_advice import refuted, settings_remedies
from vramscope_analysis.diagnosis.words import MIB, fitting, size_text
from vramscope_analysis.evidence.memory_layout import PRIVATE, MemoryLayout
from vramscope_analysis.evidence.recorded_requests import recorded_requests
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_analysis.evidence.window_layout import window_layout
from vramscope_analysis.moments.recorded_memory import RecordedMemory

KIND: Final = "fragmentation"
LARGE_SHARE: Final = 0.25
LARGE_BYTES: Final = 64 * MIB


@dataclass(frozen=True)
class Pieces:
    """The moment at which most was reserved.

    Args:
        moment: that moment.
        reserved_bytes: held then.
        live_bytes: in blocks then.
        highest_bytes: most in blocks at any moment of the recording.
        requested_bytes: what was asked for of the blocks then.
        layout: free memory then, by pool and stream.
    """

    moment: int
    reserved_bytes: int
    live_bytes: int
    highest_bytes: int
    requested_bytes: int
    layout: MemoryLayout

    @property
    def private_bytes(self) -> int:
        """Free memory of graphs and pools of the job, which serves nothing else."""
        return sum(pool.free_bytes for pool in self.layout.pools if pool.pool == PRIVATE)

    @property
    def lost_bytes(self) -> int:
        """Reserved and never needed at once."""
        return max(self.reserved_bytes - self.highest_bytes - self.private_bytes, 0)

    @property
    def rounding_bytes(self) -> int:
        """How much larger blocks were than what was asked for."""
        return self.live_bytes - self.requested_bytes


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
        layout=window_layout(memory, moment),
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
    shape, requests = shape_of(pieces.layout), recorded_requests(memory)
    sentences = [
        "" if shape is None else shape.words,
        "" if requests is None else f"{asked_text(requests)}.",
    ]
    lost, of = size_text(pieces.lost_bytes), size_text(pieces.reserved_bytes)
    best = remedies[0].predicted_bytes if remedies else None
    if best:
        summary = (
            f"{lost} of {of} reserved were never needed at once; {size_text(best)} can be had."
        )
    else:
        why = "they lie in pieces" if shape is None else shape.short
        summary = f"{lost} of {of} reserved were never needed at once: {why}."
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
                "largest_free_bytes": pieces.layout.largest_bytes,
                "utilisation_at_peak": round(
                    pieces.highest_bytes / max(pieces.reserved_bytes, 1), 4
                ),
                "shape": "" if shape is None else shape.kind,
                "pools": [pool_row(pool) for pool in pieces.layout.pools[:MOST_POOLS]],
                "pinned_by": [dict(vars(pin)) for pin in pieces.layout.pins],
                **request_numbers(requests),
                "does_not_help": list(refuted(settings, trials)),
                "replayed": replayed(trials),
            },
            0.95 if remedies else 0.75,
            remedies=(*remedies, *shape_remedies(shape)),
            detail=" ".join(sentence for sentence in sentences if sentence),
        )
    ]

"""What is wrong in a memory snapshot, told from it alone.

Whatever needs more than the allocator's own record is left out: the driver, other processes, time.
Times out of memory have a judge of their own (:mod:`vramscope_analysis.diagnosis.oom_snapshot`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vramscope_analysis.allocator import settings_from_snapshot, settings_text
from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.settings_advice import settings_conflict, trials_of
from vramscope_analysis.diagnosis.snapshot_growth import snapshot_growth
from vramscope_analysis.diagnosis.snapshot_pieces import snapshot_pieces
from vramscope_analysis.diagnosis.words import MIB, fitting, share_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_analysis.moments.moment import moment_of
from vramscope_analysis.moments.recorded_memory import RecordedMemory
from vramscope_analysis.replay import Recording, advise

MOST_REPLAYED: Final = 400_000
"""A recording with more entries is not replayed under other settings: it would take minutes."""
WAITING_SHARE: Final = 0.1
WAITING_BYTES: Final = 64 * MIB


def diagnose_snapshot(
    memory: RecordedMemory,
    *,
    limit_bytes: int | None = None,
    trials: Sequence[SettingsTrial] | None = None,
) -> list[Finding]:
    """What one device of a snapshot shows.

    Args:
        memory: the device.
        limit_bytes: what the process could have at most; None is what the recording shows.
        trials: what a replay under other settings said; None is to replay here.
    """
    settings = settings_of(memory)
    if trials is None:
        trials = tried(memory, limit_bytes)
    return [
        *snapshot_growth(memory),
        *snapshot_pieces(memory, settings, trials),
        *_waiting(memory),
        *settings_conflict(RankEvidence(memory.device, settings=settings)),
    ]


def settings_of(memory: RecordedMemory) -> str | None:
    """The settings in force as text; None where the snapshot does not tell."""
    said: dict[str, Any] = memory.snapshot.settings
    if not said:
        return None
    text = said.get("PYTORCH_CUDA_ALLOC_CONF")
    if isinstance(text, str) and text:
        return text
    try:
        return settings_text(settings_from_snapshot(said))
    except ValueError:
        return None


def tried(memory: RecordedMemory, limit_bytes: int | None = None) -> tuple[SettingsTrial, ...]:
    """The recording replayed under other settings; nothing where that cannot be."""
    if not memory.has_history or memory.entries > MOST_REPLAYED:
        return ()
    try:
        recording = Recording.from_snapshot(memory.snapshot, memory.device)
        return trials_of(advise(recording, limit_bytes=limit_bytes, anew=True))
    except ValueError:
        return ()


def _waiting(memory: RecordedMemory) -> list[Finding]:
    """Memory that was free at the peak, and waited for another stream."""
    if not memory.has_history:
        return []
    peak = moment_of(memory, memory.peak_moment)
    if peak.pending_bytes < max(WAITING_BYTES, WAITING_SHARE * peak.live_bytes):
        return []
    return [
        Finding(
            "retention",
            "info",
            fitting(
                f"{size_text(peak.pending_bytes)} at the peak were free already, and waited for "
                "another stream."
            ),
            {"waiting_bytes": peak.pending_bytes, "active_bytes": peak.live_bytes},
            0.85,
            remedies=(
                Remedy(
                    "keep a reference until the other stream is done, in place of record_stream",
                    "The block is free when the reference goes, not when an event was noticed.",
                    peak.pending_bytes,
                    "a wait for the stream at a place of your own choice",
                ),
            ),
            detail=f"{share_text(peak.pending_bytes / peak.live_bytes)} of what was active then.",
            subject="cross-stream reuse",
        )
    ]

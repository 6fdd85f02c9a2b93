"""The finding ``pinned_growth``: more and more host memory is pinned.

Pinned memory cannot be moved to swap, so it is the machine's and not only the process's. PyTorch
keeps what was pinned once, in sizes rounded up to powers of two.
"""

from __future__ import annotations

from typing import Final

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.host_advisor import advise_host, host_use
from vramscope_analysis.diagnosis.host_limit import HostLimit, host_limit
from vramscope_analysis.diagnosis.host_rise import host_rise, thinned
from vramscope_analysis.diagnosis.words import MIB, fitting, rate_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "pinned_growth"
MIN_BYTES: Final = 32 * MIB
_USED: Final = "host.pinned_bytes"
_HELD: Final = "host.pinned_reserved_bytes"


def pinned_growth(rank: RankEvidence) -> list[Finding]:
    """Judge the pinned memory that PyTorch has handed out."""
    samples = rank.samples
    rows = thinned(samples, _USED)
    rise = host_rise(rows, rows.numbers(_USED), MIN_BYTES)
    if rise is None:
        return []
    limit = host_limit(samples, rise.bytes_per_s)
    per_step = rise.bytes_per_step
    pace = rate_text(rise.bytes_per_s, "second") if per_step is None else rate_text(per_step)
    return [
        Finding(
            KIND,
            "warning",
            fitting(
                f"{size_text(rise.grown_bytes)} more host memory are pinned, {pace}; "
                "none of it was freed."
            ),
            {
                "series": _USED,
                "grown_bytes": rise.grown_bytes,
                "seconds": round(rise.seconds, 1),
                "slope_bytes_per_step": per_step,
                "since_step": rise.since_step,
                "pinned_bytes": samples.last(_USED),
                "pinned_reserved_bytes": samples.last(_HELD),
                "host_free_bytes": limit.free_bytes,
                "seconds_left": limit.seconds_left,
            },
            0.85,
            remedies=(
                Remedy(
                    "do not keep pinned batches: keep a copy, or what was computed from them",
                    "A pinned tensor that somebody holds is pinned as long as it lives.",
                    rise.grown_bytes,
                    "",
                    "kept.append(batch.clone())  # a copy is not pinned",
                ),
                *_room(rank, limit),
            ),
            detail="Pinned memory cannot be moved to swap: it is missing to the whole machine."
            + limit.words,
            since_step=rise.since_step,
        )
    ]


def _room(rank: RankEvidence, limit: HostLimit) -> tuple[Remedy, ...]:
    """What would give the host room, where its end is near."""
    if not limit.is_near or limit.limit_bytes is None:
        return ()
    return advise_host(host_use(rank), limit.limit_bytes)

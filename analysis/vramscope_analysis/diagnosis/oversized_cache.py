"""The finding ``oversized_cache``: memory that something needed once, and that training does not.

The allocator keeps what it has. That is no leak and does the job itself no harm: it reuses its
cache before it asks for more. It takes memory from everybody else: other processes, and libraries
that allocate past PyTorch.
"""

from __future__ import annotations

from typing import Any, Final

from vramscope_analysis.diagnosis.cache_use import CacheUse, cache_use
from vramscope_analysis.diagnosis.finding import Finding, Remedy, Severity
from vramscope_analysis.diagnosis.peak_parts import phase_steps
from vramscope_analysis.diagnosis.words import MIB, count_text, fitting, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "oversized_cache"
MIN_STEPS: Final = 60
IDLE_STEPS: Final = 50
FULL_SHARE: Final = 0.05
"""With less than this part of the device free, others may not get what they need."""
_WORDS: Final = {"eval": "evaluation"}


def oversized_cache(rank: RankEvidence) -> list[Finding]:
    """Judge what is reserved and was not needed in the last steps."""
    use = cache_use(rank, MIN_STEPS)
    if use is None or use.limit_bytes is None or use.private_bytes is None:
        return []
    phase = _phase_of_highest(rank, use)
    # What no request ever needed at once lies in pieces, which is another finding.
    was_needed = use.highest_bytes - use.lately_bytes >= 0.5 * use.unused_bytes
    if not was_needed or (not phase and use.idle_steps < IDLE_STEPS):
        return []
    free_bytes = rank.samples.last("device.free_bytes")
    is_full = _is_full(rank, free_bytes) and use.unused_bytes >= FULL_SHARE * use.limit_bytes
    if not is_full and not _is_large(use):
        return []
    severity: Severity = "warning" if is_full else "info"
    return [
        Finding(
            KIND,
            severity,
            _summary(use, phase, free_bytes if is_full else None),
            _evidence(use, free_bytes),
            0.9 if use.returnable_bytes is not None else 0.7,
            remedies=_remedies(use, phase),
            detail=_detail(use, phase),
            subject=phase,
            since_step=use.highest_step if phase else use.last_step,
        )
    ]


def _is_large(use: CacheUse) -> bool:
    limit_bytes = use.limit_bytes or 0
    unused = use.unused_bytes
    if unused >= 0.08 * limit_bytes and unused >= 0.25 * use.reserved_bytes:
        return True
    return unused >= max(0.45 * use.reserved_bytes, 64 * MIB, 0.01 * limit_bytes)


def _is_full(rank: RankEvidence, free_bytes: int | None) -> bool:
    if free_bytes is None or rank.total_bytes is None or rank.total_bytes <= 0:
        return False
    return 0 <= free_bytes < FULL_SHARE * rank.total_bytes


def _phase_of_highest(rank: RankEvidence, use: CacheUse) -> str:
    for name in ("checkpoint", "eval"):
        if use.highest_step in phase_steps(rank, name):
            return name
    return ""


def _summary(use: CacheUse, phase: str, free_bytes: int | None) -> str:
    unused = size_text(use.unused_bytes)
    if free_bytes is not None:
        return fitting(
            f"The cache keeps {unused} that training does not use; "
            f"{size_text(free_bytes)} of the device are left for others."
        )
    if phase:
        word = f"{_WORDS.get(phase, phase)}{_at(use.highest_step)}"
        return fitting(f"The {word} lifted reserved memory: {unused} are not used since.")
    return fitting(f"The cache keeps {unused} that were last needed{_at(use.last_step)}.")


def _at(step: int | None) -> str:
    return "" if step is None else f" at step {count_text(step)}"


def _detail(use: CacheUse, phase: str) -> str:
    word = _WORDS.get(phase, phase) or "highest step"
    return (
        f"The {word} needed {size_text(use.highest_bytes)}, the last steps "
        f"{size_text(use.lately_bytes)}. The job itself reuses its cache before it asks for more; "
        "it is missing to others alone."
    )


def _remedies(use: CacheUse, phase: str) -> tuple[Remedy, ...]:
    when = f"once, after the {_WORDS.get(phase, phase)}" if phase else "once"
    remedies = [
        Remedy(
            f"empty the cache {when}",
            "Gives whole free segments back to the device, for other processes and libraries.",
            use.unused_bytes,
            "some milliseconds, and the memory has to be taken anew when it is needed again",
            "torch.cuda.empty_cache()",
            "empty_cache",
        )
    ]
    if phase == "checkpoint":
        remedies.append(
            Remedy(
                "gather what is saved in host memory",
                "Saving then needs no large pieces of the device.",
                use.highest_bytes - use.lately_bytes,
                "as much host memory while it is saved",
            )
        )
    if phase == "eval":
        remedies.append(
            Remedy(
                "evaluate in smaller batches",
                "The evaluation then fits into what training has reserved.",
                use.highest_bytes - use.lately_bytes,
                "the evaluation takes longer",
            )
        )
    return tuple(remedies)


def _evidence(use: CacheUse, free_bytes: int | None) -> dict[str, Any]:
    return {
        "series": "reserved_bytes.all.current",
        "reserved_bytes": use.reserved_bytes,
        "unused_bytes": use.unused_bytes,
        "returnable_bytes": use.returnable_bytes,
        "lately_bytes": use.lately_bytes,
        "highest_bytes": use.highest_bytes,
        "idle_steps": use.idle_steps,
        "device_free_bytes": free_bytes,
        "since_step": use.highest_step if use.last_step is None else use.last_step,
    }

"""More room without a smaller job: settings that a replay proved, and the process's own cap."""

from __future__ import annotations

from dataclasses import replace

from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.settings_advice import settings_remedies
from vramscope_analysis.diagnosis.words import count_text, size_text


def proven_settings(case: OomCase) -> list[Remedy]:
    """Settings of the allocator that a replay of this job's own recording proved."""
    found = settings_remedies(case.settings, case.trials)
    growing = case.demand.growing or case.demand.kept
    if growing is None or growing.is_jump or growing.per_step <= 0:
        return list(found)
    spare = (case.shortage.pieces_bytes or 0) + (case.shortage.room_bytes or 0)
    left = max(spare - (case.shortage.request_bytes or 0), 0) / growing.per_step
    return [
        replace(
            remedy,
            why=f"{remedy.why.rstrip('.')}; at {size_text(growing.per_step)} more with every step "
            f"that lasts for about {count_text(left, 'step')}.",
        )
        for remedy in found
    ]


def raised_limit(case: OomCase) -> list[Remedy]:
    """The process's own cap, where the device has enough beyond it."""
    shortage = case.shortage
    withheld, missing = shortage.withheld_bytes, shortage.missing_bytes
    if not shortage.is_at_own_limit or not withheld or withheld < (missing or 0):
        return []
    return [
        Remedy(
            "raise the memory fraction of the process",
            f"the device had {size_text(withheld)} free beyond the cap of "
            f"{size_text(shortage.allowed_bytes)}.",
            None,
            "other processes may want it",
            "torch.cuda.set_per_process_memory_fraction(...)",
        )
    ]

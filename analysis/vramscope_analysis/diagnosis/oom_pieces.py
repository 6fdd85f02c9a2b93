"""What makes free pieces whole: memory asked for in another order, and the cache emptied in time.

Which setting of the allocator would help is for a replay to show; without one, none is named.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.words import size_text
from vramscope_analysis.evidence.entry_values import amount_in, entries_in

_EVAL: Final = 1
"""Code of the phase eval in samples."""


def whole_pieces(case: OomCase) -> list[Remedy]:
    """Remedies against fragmentation, the one that fits best first."""
    shortage = case.shortage
    request, needed = shortage.request_bytes, shortage.needed_bytes
    remedies: list[Remedy] = []
    after = "the evaluation" if _evaluated_before(case) else _larger_blocks(case)
    if after:
        remedies.append(
            Remedy(
                f"empty the cache after {after}",
                "its blocks have other sizes; training splits them and cannot have them whole.",
                shortage.pieces_bytes,
                "the next steps take their memory from the device again",
                "torch.cuda.empty_cache()",
                "empty_cache",
            )
        )
    elif request is not None and needed is not None and 2 * request >= needed:
        place = f" of {case.place.short}" if case.place else ""
        remedies.append(
            Remedy(
                f"allocate what lasts before the large block{place}, or keep that block",
                "small tensors that stay lie in the segment that it had before.",
                shortage.pieces_bytes,
            )
        )
    if not case.trials:
        remedies.append(
            Remedy(
                "record the next run when it gets tight, and replay it under other settings",
                "which setting of the allocator helps, only a recording of this job can show.",
                cost="recording makes an allocation take half as long again",
                fix='VRAMSCOPE_HISTORY_RULE="above 90% for 20 steps"',
            )
        )
    return remedies


def _larger_blocks(case: OomCase) -> str:
    """What took larger blocks than the one asked for, if their segments serve such requests now."""
    carved, segment = case.shortage.carved_bytes, case.shortage.segment_bytes
    if not carved or segment is None or carved <= segment:
        return ""
    pinned = [b for row in case.report.free_blocks for b in entries_in(row, "pinned_by")]
    if not any(case.is_of_same_kind(amount_in(b, "requested_bytes")) for b in pinned):
        return ""
    return f"what takes blocks of {size_text(carved)}, such as an evaluation"


def _evaluated_before(case: OomCase) -> bool:
    """Whether an evaluation ended after the last step before the failure, or in the one before."""
    if not len(case.demand_rows):
        return False
    times = case.demand_rows.time_ns
    since = int(times[-2] if len(times) > 1 else times[-1])
    samples = case.report.samples
    if np.any((samples.numbers("phase") == _EVAL) & (samples.time_ns >= since)):
        return True
    return case.rank is not None and any(
        stretch.name == "eval" and stretch.end_ns is not None and stretch.end_ns >= since
        for stretch in case.rank.stretches
        if stretch.start_ns < case.report.time_ns
    )

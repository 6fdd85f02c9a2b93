"""Ranks whose steps had batch sizes, with peaks that follow from them as a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.made_ranks import GIB, MIB, Column, made_rank
from vramscope_analysis.evidence.run_evidence import RankEvidence

PARAMETERS = 2 * GIB
STATE = 4 * GIB
GRADIENTS = 2 * GIB
FIXED = PARAMETERS + STATE
SAMPLE = 512 * MIB
LIMIT = 40 * GIB


def line(size: int) -> int:
    """A gibibyte that is always there besides, and the same for each sample."""
    return FIXED + GIB + SAMPLE * size


def planned(*parts: tuple[int, int]) -> list[int]:
    """Sizes of steps, given as (size, steps)."""
    return [size for size, steps in parts for _ in range(steps)]


def batch_rank(
    sizes: Sequence[int],
    peak: Callable[[int], int] = line,
    *,
    columns: Mapping[str, Column] | None = None,
    total_bytes: int | None = LIMIT,
    **more: Any,
) -> RankEvidence:
    """A rank that trained with these sizes, a step each."""
    told: dict[str, Column] = {
        "step.batch_size": sizes,
        "step.batch_count": 1,
        "step.peak_allocated_bytes": [peak(size) for size in sizes],
        "category.parameters_bytes": PARAMETERS,
        "category.optimizer_state_bytes": STATE,
        "category.gradients_bytes": GRADIENTS,
        "category.gradients_kept_bytes": 0,
        "category.buffers_bytes": 0,
        "allocated_bytes.all.current": FIXED + GRADIENTS,
    }
    told.update(columns or {})
    return made_rank(len(sizes), columns=told, total_bytes=total_bytes, **more)

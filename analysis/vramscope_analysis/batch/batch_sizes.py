"""How many samples a rank took at a time in each step, from whoever has told it."""

from __future__ import annotations

from typing import Final

import numpy as np

from vramscope_analysis.evidence.columns import Numbers, Rows

SEEN: Final = "step.batch_size"
"""Samples of one forward pass, as the agent has seen them come from the loaders."""
PASSES: Final = "step.batch_count"
"""Forward passes of one step."""
TOLD: Final = "user.batch_size"
"""What the job or a framework's callback logs."""


def batch_sizes(rows: Rows) -> Numbers:
    """Samples of one forward pass in each step; NaN where nobody has told.

    What the agent has seen itself counts more than what the job logs, which may be of the whole
    step.
    """
    seen, told = rows.numbers(SEEN), rows.numbers(TOLD)
    sizes = np.where(np.isfinite(seen), seen, told)
    return np.where(sizes >= 1, sizes, np.nan)


def passes(rows: Rows) -> Numbers:
    """Forward passes in each step; NaN where it is not known."""
    counted = rows.numbers(PASSES)
    return np.where(counted >= 1, counted, np.nan)

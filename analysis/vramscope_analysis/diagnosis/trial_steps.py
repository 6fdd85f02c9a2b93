"""Steps in which a library tries its kernels for a new shape: `cudnn.benchmark`, autotuners.

Each kernel gets a workspace of its own size, for a moment. One that does not fit is left out, so a
request fails and the job goes on; cuDNN's benchmark mode empties the cache in the end. What such a
step takes, and what it flushes, says nothing of the steps that follow.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.evidence.columns import Numbers, Rows

MOST_SHARE: Final = 0.2
"""Of the steps: what happens in more of them than that is how the job works."""


def trial_steps(rows: Rows) -> NDArray[np.bool_]:
    """Which of the steps try kernels; the first is none, since nothing is known before it.

    Args:
        rows: the steps.
    """
    flushes = _happened(rows, "num_alloc_retries")
    emptied = _happened(rows, "num_sync_all_streams") - flushes
    trials: NDArray[np.bool_] = (emptied >= 1) | (_happened(rows, "num_ooms") >= 1)
    if len(trials) and trials.mean() > MOST_SHARE:
        return np.zeros(len(trials), np.bool_)
    return trials


def _happened(rows: Rows, name: str) -> Numbers:
    """By how much a counter rose within each row; 0 where that is not known."""
    risen = np.diff(rows.numbers(name), prepend=np.nan)
    return np.where(np.isfinite(risen) & (risen > 0), risen, 0.0)

"""What would let an optimizer need less: its state smaller, elsewhere or shared, its step lean.

Each measure says what it frees of this job and what it costs; where the rows do not show that it
helps, or not how much, it is not offered.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.known_types import known_types
from vramscope_analysis.diagnosis.peak_parts import FIRST_STEPS, PeakParts
from vramscope_analysis.diagnosis.words import share_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

WINDOW_STEPS: Final = 100
HOST_BYTES_PER_S: Final = 20e9
"""What moves between device and host in a second: a cautious figure for PCIe 4."""
OPTIMIZER: Final = 3

_WHOLE_STATE: Final = (1.9, 2.1)
"""Of the gradients: the state of Adam, if this rank has all of it. Another share may be a part."""
_BUCKETS: Final = (0.97, 1.25)
"""Of the gradients, with workspaces and what is left of a step beside them. What a sharded model
gathers and keeps is as large as all ranks' gradients together."""


def smaller_state(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """An optimizer with a smaller state: where two or more numbers are kept for each parameter."""
    state, parameters = parts.optimizer_state or 0, parts.parameters or 0
    if not parameters or state < 1.8 * parameters or state < 0.1 * parts.peak_bytes:
        return None
    types = known_types(rank)
    is_float32 = types is not None and types.parameters == "float32"
    left = "a quarter of it, for the parameters are float32" if is_float32 else "half of it"
    return Remedy(
        "use an 8-bit optimizer",
        f"The state takes {size_text(state)}, {state / parameters:.1f} times the parameters; in 8 "
        f"bits at most {left}.",
        state * 3 // 4 if is_float32 else state // 2,
        "another optimizer: compare the loss of both",
        "bitsandbytes.optim.AdamW8bit(...)",
    )


def offloaded_state(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """The optimizer's state on the host: where moving it is short against a step."""
    state = parts.optimizer_state or 0
    duration = rank.steps.after(-WINDOW_STEPS).numbers("step.duration_us")
    duration = duration[np.isfinite(duration) & (duration > 0)]
    if state < 0.2 * parts.peak_bytes or not len(duration):
        return None
    moving_s, step_s = 2 * state / HOST_BYTES_PER_S, float(np.median(duration)) / 1e6
    if moving_s > 0.5 * step_s:
        return None
    share = share_text(moving_s / step_s)
    return Remedy(
        "keep the optimizer's state in host memory",
        f"The state takes {size_text(state)} of the device and is needed once a step.",
        state,
        f"about {share} of the step time to move it, and as much host memory",
    )


def sharded_state(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """A share of the state on each rank: where each is known to have all of it.

    Ranks of sharded models hold a part of parameters and state in the same proportion. Buckets as
    large as the gradients tell that it is `DistributedDataParallel`, on each of whose ranks all of
    the model is.
    """
    state, ranks = parts.optimizer_state or 0, rank.world_size
    if ranks < 2 or state < 0.1 * parts.peak_bytes:
        return None
    rows = rank.steps.after(-WINDOW_STEPS)
    names = ("parameters", "gradients", "optimizer_state", "buffers")
    named = sum(rows.numbers(f"category.{name}_bytes") for name in names)
    left = rows.numbers("allocated_bytes.all.current") - named
    gradients = rows.numbers("category.gradients_bytes")
    known = np.isfinite(left) & np.isfinite(gradients)
    if not known.any():
        return None
    bucket, gradient = float(np.median(left[known])), float(np.median(gradients[known]))
    if not gradient or not _is_in(bucket / gradient, _BUCKETS):
        return None
    if not _is_in(state / gradient, _WHOLE_STATE):
        return None
    return Remedy(
        f"shard the optimizer's state over the {ranks} ranks",
        f"Each has all of it now, {size_text(state)}: there are buckets for all gradients.",
        state - state // ranks,
        "parameters are gathered after each step",
        "torch.distributed.optim.ZeroRedundancyOptimizer(...)",
    )


def fused_step(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """A step without temporary copies: where the optimizer is the highest moment."""
    if parts.peak_part != OPTIMIZER:
        return None
    rows = rank.steps.after(max(FIRST_STEPS, len(rank.steps) - WINDOW_STEPS))
    optimizer = rows.numbers("part.optimizer.peak_bytes")
    others = np.maximum(
        rows.numbers("part.forward.peak_bytes"), rows.numbers("part.backward.peak_bytes")
    )
    temporary = optimizer - rows.numbers("allocated_bytes.all.current")
    # Without the copies the next highest moment is the peak.
    freed = np.minimum(temporary, optimizer - others)
    freed = freed[np.isfinite(freed)]
    if not len(freed) or np.median(freed) <= 0:
        return None
    size = int(np.median(temporary[np.isfinite(temporary)]))
    return Remedy(
        "step the optimizer fused, or parameter by parameter",
        f"Its step takes {size_text(size)} for a moment beyond what it keeps, at the peak.",
        int(np.median(freed)),
        "none with fused=True; foreach=False is slower",
        "fused=True",
    )


def _is_in(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]

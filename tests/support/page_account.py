"""What a newer agent tells of a generated run: exact peaks, parts of steps, categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tests.support.page_rows import Floats

if TYPE_CHECKING:
    from tests.support.page_scenario import Scenario

GIB = 1 << 30
SHARES = {"parameters": 15.0 / 89.8, "gradients": 15.0 / 89.8, "optimizer_state": 59.4 / 89.8}
BACKWARD = 2
PARTS = {"forward": (0.96, 2.1, 0.31), "backward": (1.0, 2.9, 0.56), "optimizer": (0.0, 0.02, 0.11)}
"""Of each part of a step: height of its peak, allocation volume in peaks, share of the time."""


def account_columns(
    scenario: Scenario, steps: NDArray[np.int64], rank: int, counters: dict[str, Floats]
) -> dict[str, Floats]:
    """More columns for the rows of ``counters``."""
    peak = scenario.peaks(steps, rank) * GIB
    kept = scenario.kept(steps) * GIB
    static = np.minimum(kept, scenario.static_gib * GIB)
    reserved = counters["reserved_bytes.all.current"]
    free_part = np.maximum(0.0, reserved - counters["allocated_bytes.all.current"])
    stranded = counters["inactive_split_bytes.all.current"]
    durations = scenario.durations_us(steps)
    state = {name: static * share for name, share in SHARES.items()}
    state["buffers"] = static - sum(state.values())
    columns: dict[str, Floats] = {
        "step.peak_allocated_bytes": kept + peak,
        "step.peak_active_bytes": kept + peak,
        "step.peak_requested_bytes": (kept + peak) * 0.99,
        "step.peak_reserved_bytes": np.maximum(reserved, kept + peak),
        "step.peak_part": np.full(len(steps), float(BACKWARD)),
        "step.allocated_volume_bytes": peak * sum(volume for _, volume, _ in PARTS.values()),
        "category.gradients_kept_bytes": state["gradients"] * float(scenario.keeps_gradients),
        "cache.stranded_bytes": stranded,
        "cache.returnable_bytes": free_part - stranded,
        "cache.private_pool_bytes": np.zeros(len(steps)),
    }
    columns |= {f"category.{name}_bytes": values for name, values in state.items()}
    for name, (height, volume, share) in PARTS.items():
        columns[f"part.{name}.peak_bytes"] = kept + peak * height
        columns[f"part.{name}.volume_bytes"] = peak * volume
        columns[f"part.{name}.time_us"] = durations * share
    return columns


def account_status(scenario: Scenario, pid: int) -> dict[str, Any]:
    """What the agent says of the device beside the counters."""
    context = int((scenario.context_gib or 0) * GIB)
    held = int((scenario.context_gib or 0) * GIB + scenario.reserved_gib * GIB)
    others = [{"pid": 991, "command": "jupyter-lab", "bytes": int(scenario.others_gib * GIB)}]
    return {
        "outside": [
            {"name": "CUDA context", "bytes": int(context * 0.4), "how": "measured at the start"},
            {"name": "NCCL", "bytes": int(context * 0.35), "how": "estimated from its channels"},
        ],
        "processes": [
            {"pid": pid, "command": "python", "bytes": held},
            *(others if scenario.others_gib else []),
        ],
    }

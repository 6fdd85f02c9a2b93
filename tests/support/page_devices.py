"""A second device of a generated rank: what its process holds there comes under "@1"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tests.support.page_rows import Floats

if TYPE_CHECKING:
    from tests.support.page_scenario import Scenario

GIB = 1 << 30
SECOND_TOTAL_GIB = 79.6


def second_device() -> dict[str, Any]:
    """As the agent tells of it, after the one that is watched in full."""
    return {
        "index": 1,
        "name": "NVIDIA H100",
        "uuid": "GPU-second",
        "total_bytes": int(SECOND_TOTAL_GIB * GIB),
        "emulated": False,
    }


def second_columns(scenario: Scenario, steps: NDArray[np.int64]) -> dict[str, Floats]:
    """Its counters: a model that does not train, and somebody else's two gigabytes."""
    held = scenario.second_gib * (1 + 0.1 * (steps % 7 == 3))
    columns = {
        "allocated_bytes.all.current@1": held,
        "allocated_bytes.all.peak@1": np.full(len(steps), 1.1 * scenario.second_gib),
        "active_bytes.all.current@1": held,
        "reserved_bytes.all.current@1": np.full(len(steps), 1.2 * scenario.second_gib),
        "reserved_bytes.all.peak@1": np.full(len(steps), 1.2 * scenario.second_gib),
        "device.total_bytes@1": np.full(len(steps), SECOND_TOTAL_GIB),
        "device.used_bytes@1": np.full(len(steps), 1.2 * scenario.second_gib + 2.0),
    }
    columns["device.free_bytes@1"] = (
        columns["device.total_bytes@1"] - columns["device.used_bytes@1"]
    )
    return {name: values * GIB for name, values in columns.items()}

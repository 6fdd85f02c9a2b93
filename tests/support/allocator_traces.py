"""Recorded allocator traces (tests/data/traces), read as the product reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from vramscope_analysis.replay import Recording
from vramscope_analysis.snapshot import Snapshot, read_snapshot

FOLDER = Path(__file__).parents[1] / "data" / "traces"

TRACES = (
    "conv__default",
    "conv__expandable",
    "fixed__default",
    "graphs__default",
    "leak__default",
    "oom__default",
    "oom__split128",
    "varlen__default",
    "varlen__expandable",
    "varlen__gc60",
    "varlen__pow2_8",
    "varlen__split128",
)
"""Names of the traces; each is complete from the first allocation on."""


@dataclass(frozen=True)
class Trace:
    """One recorded run and the counters that the real allocator had.

    Args:
        recording: the run.
        steps: counters by name after each optimizer step. Their peaks are those of the whole run
            so far: it never reset them.
        final_stats: all counters by name at the end.
    """

    recording: Recording
    steps: list[dict[str, int]]
    final_stats: dict[str, int]


@lru_cache(maxsize=2)
def load_snapshot(name: str) -> Snapshot:
    """Read one snapshot."""
    return read_snapshot(FOLDER / f"{name}.pickle.gz")


@lru_cache(maxsize=4)
def load_trace(name: str) -> Trace:
    """Read one trace and its counters."""
    counted = json.loads((FOLDER / f"{name}.json").read_text())
    return Trace(
        recording=Recording.from_snapshot(load_snapshot(name)),
        steps=[
            dict(zip(counted["columns"], row, strict=True))
            for row in counted["steps"]
            if row[0] != "oom"  # a failure: its step has no counters
        ],
        final_stats=counted["final_stats"],
    )


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, int]:
    """Counters by dotted name, as ``torch.cuda.memory_stats()`` returns them."""
    flat: dict[str, int] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat

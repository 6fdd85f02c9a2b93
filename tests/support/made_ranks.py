"""Ranks of a run as the judges see them, with only those numbers that a test is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests.support.allocator_traces import FOLDER
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch

MIB = 1 << 20
GIB = 1 << 30
START_NS = 1_790_000_000 * 10**9
STEP_NS = 100_000_000

Column: TypeAlias = "Sequence[float] | float | NDArray[Any]"
"""One number for each row, or one for all."""

COUNTED = {
    "allocated_bytes.all.current": "allocated_bytes.all.current",
    "active_bytes.all.current": "active_bytes.all.current",
    "reserved_bytes.all.current": "reserved_bytes.all.current",
    "inactive_split_bytes.all.current": "inactive_split_bytes.all.current",
    "allocated_bytes.all.peak": "step.peak_allocated_bytes",
    "active_bytes.all.peak": "step.peak_active_bytes",
    "reserved_bytes.all.peak": "step.peak_reserved_bytes",
    "num_alloc_retries": "num_alloc_retries",
    "num_ooms": "num_ooms",
    "num_device_alloc": "num_device_alloc",
    "num_device_free": "num_device_free",
    "num_sync_all_streams": "num_sync_all_streams",
}
"""Columns of the recorded traces, and what the agent calls them. Peaks there are those of the whole
run so far, which is all that a judge of the highest moments needs."""


def rows_of(count: int, columns: Mapping[str, Column], *, every_ns: int = STEP_NS) -> Rows:
    """Rows numbered from 1, ``every_ns`` apart."""
    return Rows(
        START_NS + every_ns * np.arange(1, count + 1),
        {name: column_of(count, values) for name, values in columns.items()},
        np.arange(1, count + 1),
    )


def column_of(count: int, values: Column) -> Any:
    """A column of integers, or of floats if one of them is."""
    if isinstance(values, int | float):
        values = [values] * count
    assert len(values) == count
    is_float = any(isinstance(value, float) for value in values)
    return np.array(list(values), np.float64 if is_float else np.int64)


def made_rank(
    steps: int,
    *,
    samples: Rows | None = None,
    stretches: Sequence[Stretch] = (),
    total_bytes: int | None = 80 * GIB,
    rank: int = 0,
    columns: Mapping[str, Column],
    **more: Any,
) -> RankEvidence:
    """A rank after so many steps."""
    return RankEvidence(
        rank,
        steps=rows_of(steps, columns),
        samples=Rows(np.zeros(0, np.int64)) if samples is None else samples,
        stretches=tuple(stretches),
        total_bytes=total_bytes,
        **more,
    )


def stretch(name: str, step: int, peak_bytes: int | None = None) -> Stretch:
    """A phase that began when so many steps were over, and took half of a step."""
    begin_ns = START_NS + STEP_NS * step
    return Stretch(name, begin_ns, begin_ns + STEP_NS // 2, step, peak_bytes)


def recorded_rank(name: str, *, total_bytes: int | None = None, **more: Any) -> RankEvidence:
    """The step rows of a job that was recorded on a GPU (``tests/data/traces``)."""
    counted = json.loads((FOLDER / f"{name}.json").read_text())
    rows = [row for row in counted["steps"] if row[0] != "oom"]
    columns = {
        COUNTED[key]: [row[at] for row in rows]
        for at, key in enumerate(counted["columns"])
        if key in COUNTED
    }
    return made_rank(
        len(rows),
        columns=columns,
        total_bytes=total_bytes or counted.get("limit_bytes") or 150_109_880_320,
        **more,
    )


def prefixes(rank: RankEvidence, every: int = 1) -> list[RankEvidence]:
    """What was known of a rank after each step."""
    return [
        replace(rank, steps=rank.steps.before(count))
        for count in range(1, len(rank.steps) + 1, every)
    ]

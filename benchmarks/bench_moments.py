"""How long questions about a recording take, from its tables on.

    python benchmarks/bench_moments.py [--copies 37]

A recorded run of the test data, as often one after the other as asked for. Times are of the CPU,
each the best of three; the first question includes what is found out once.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vramscope_analysis.moments import (
    RecordedMemory,
    growth_between,
    moment_of,
    stack_tree,
    timeline_of,
)
from vramscope_analysis.snapshot import Snapshot, read_snapshot

RECORDING = Path(__file__).parents[1] / "tests/data/traces/fixed__default.pickle.gz"


def repeated(snapshot: Snapshot, copies: int) -> Snapshot:
    """The same entries again and again, later each time."""
    trace = snapshot.traces[0]
    columns: dict[str, Any] = {
        field.name: np.concatenate([getattr(trace, field.name)] * copies)
        for field in dataclasses.fields(trace)
        if isinstance(getattr(trace, field.name), np.ndarray)
    }
    span_us = int(trace.time_us[-1] - trace.time_us[0]) + 1
    columns["time_us"] += np.repeat(np.arange(copies) * span_us, len(trace))
    return dataclasses.replace(snapshot, traces=(dataclasses.replace(trace, **columns),))


def best_ms(work: Callable[[], object], rounds: int = 3) -> float:
    """CPU time of the fastest of some rounds."""
    taken: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken) * 1000


def main() -> None:
    """Print one line for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=37)
    options = parser.parse_args()
    snapshot = repeated(read_snapshot(RECORDING), options.copies)
    memory = RecordedMemory.of(snapshot)
    end = memory.last_moment
    print(f"{memory.entries:,} entries, {len(memory.lifetimes):,} blocks")
    questions: list[tuple[str, Callable[[], object]]] = [
        ("first timeline", lambda: timeline_of(RecordedMemory.of(snapshot), "stack")),
        ("timeline by stack", lambda: timeline_of(memory, "stack")),
        ("timeline by category", lambda: timeline_of(memory, "category")),
        ("a moment", lambda: moment_of(memory, memory.peak_moment)),
        ("its tree", lambda: stack_tree(memory, memory.peak_moment)),
        ("growth", lambda: growth_between(memory, end // 2, memory, end)),
    ]
    for name, work in questions:
        print(f"{name:22}{best_ms(work):10.1f} ms")


if __name__ == "__main__":
    main()

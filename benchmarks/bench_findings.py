"""What judging costs a server: per batch, on the event loop, in the thread, and in memory.

    python benchmarks/bench_findings.py [--ranks 64] [--steps 4000]

Rows are made up: a step row and ten samples a step, as an agent sends them, in batches of a quarter
of a second. Times are of the CPU.
"""

from __future__ import annotations

import argparse
import time
from array import array
from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.diagnose import JUDGES
from vramscope_protocol.columns import encode_columns
from vramscope_protocol.messages import BatchKind, DeviceInfo, Field, RankInfo
from vramscope_protocol.series import SERIES
from vramscope_server.findings.evidence import GatheredEvidence
from vramscope_server.findings.judging import Judging
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.rows import ColumnLayout, Rows

MIB: Final = 1 << 20
GIB: Final = 1 << 30
RUN: Final = "run"
START_NS: Final = 1_800_000_000 * 10**9
STEP_NS: Final = 1_000_000_000
STEPS_A_BATCH: Final = 4


class Ranks:
    """A registry of live ranks."""

    def __init__(self, count: int) -> None:
        device = DeviceInfo(0, "Fake GPU", "GPU", 80 * GIB)
        self._infos = [
            RankInfo(rank, "host", rank, devices=[device], started_ns=START_NS)
            for rank in range(count)
        ]
        self.state: dict[str, Any] = {
            "state": "live",
            "world_size": count,
            "emulated": False,
            "ranks": [{"rank": rank, "state": "live"} for rank in range(count)],
        }

    def rank_info(self, run_id: str, rank: int) -> RankInfo:
        return self._infos[rank]

    def run(self, run_id: str) -> dict[str, Any]:
        return self.state


def rows_of(kind: BatchKind, layout: ColumnLayout, first_step: int, count: int, pace: int) -> Rows:
    """Rows of numbers that go up and down, without a trend."""
    number = first_step + np.arange(count) // pace
    columns = []
    for at, field in enumerate(layout.fields):
        values = (at + 1) * MIB + (number * 7919 * (at + 1)) % 4096 * 512
        if field.name == "time_ns":
            values = START_NS + (first_step * pace + np.arange(count)) * (STEP_NS // pace)
        elif field.name == "step":
            values = number
        columns.append(array("q", values.tolist()))
    return Rows.from_batch(kind, first_step, layout, count, encode_columns(columns))


def main() -> None:
    """Print one line for each cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4000)
    options = parser.parse_args()
    ranks = Ranks(options.ranks)
    layout = ColumnLayout([Field(name, "q") for name in SERIES])
    evidence = GatheredEvidence(ranks)
    taken_s, batches = 0.0, 0
    told_s, gathered_s, judged_s = [0.0], [0.0], [0.0]
    judging = Judging(JUDGES)
    for first in range(1, options.steps + 1, STEPS_A_BATCH):
        steps = rows_of("step", layout, first, STEPS_A_BATCH, 1)
        samples = rows_of("sample", layout, first, STEPS_A_BATCH * 10, 10)
        begun_s = time.process_time()
        for rank in range(options.ranks):
            evidence.take_steps(RUN, rank, steps, LifeOffset(0, 0))
            evidence.take_samples(RUN, rank, samples)
        taken_s += time.process_time() - begun_s
        batches += 2 * options.ranks
        if first % 20 == 1:
            begun_s = time.process_time()
            complete = evidence.run_evidence(RUN, ranks.state, START_NS + first * STEP_NS)
            told_s.append(time.process_time() - begun_s)
            run = complete()
            gathered_s.append(time.process_time() - begun_s)
            if first > options.steps - 60:
                begun_s = time.process_time()
                judging.judge(run)
                judged_s.append(time.process_time() - begun_s)
    gathered = evidence.run(RUN)
    held = 0 if gathered is None else sum(rank.held_bytes for rank in gathered.ranks.values())
    print(f"{options.ranks} ranks, {options.steps} steps, {len(layout.fields)} columns")
    print(f"  taking a batch       {taken_s / batches * 1e6:8.1f} us")
    print(f"  beginning a turn     {max(told_s) * 1e3:8.1f} ms at most, on the event loop")
    print(f"  gathering rows       {np.median(gathered_s) * 1e3:8.1f} ms, in the thread")
    print(f"  all judges           {max(judged_s) * 1e3:8.1f} ms, in the thread")
    for name, seconds in sorted(judging.seconds.items(), key=lambda item: -item[1]):
        print(f"    {name:<19}{seconds / max(1, len(judged_s) - 1) * 1e3:8.1f} ms")
    print(f"  memory               {held / MIB:8.1f} MiB, {held / options.ranks / MIB:.2f} a rank")


if __name__ == "__main__":
    main()

"""On a real GPU: exact floors of training show a leak within its bounds, and none where none is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

COUNTERS = ("allocated_bytes.all.current", "allocation.all.current")
ONSET = 60
KIB = 1 << 10
MIB = 1 << 20


def floors_of(steps: int, after_step: Callable[[int, Any], None]) -> RankEvidence:
    """A small training of batches of any length; its counters at the end of each step."""
    import torch

    torch.manual_seed(0)
    device = torch.device("cuda")
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    rng = np.random.default_rng(0)
    rows: list[tuple[int, ...]] = []
    for step in range(1, steps + 1):
        batch = torch.randn(int(rng.integers(16, 256)), 256, device=device)
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        after_step(step, device)
        stats = torch.cuda.memory_stats()
        rows.append((time.time_ns(), step, *(stats[name] for name in COUNTERS)))
    table = np.array(rows, np.int64)
    columns = {name: table[:, 2 + index] for index, name in enumerate(COUNTERS)}
    return RankEvidence(0, steps=Rows(table[:, 0], columns, table[:, 1]))


def first_said(rank: RankEvidence) -> int | None:
    for rows in range(1, len(rank.steps) + 1):
        if leak(RankEvidence(0, steps=rank.steps.before(rows))):
            return rows
    return None


@pytest.mark.parametrize(
    ("size", "steps", "within"), [(MIB, 200, 100), (64 * KIB, 600, 500)], ids=["1 MiB", "64 KiB"]
)
def test_a_leak_is_seen_within_its_bound(size: int, steps: int, within: int) -> None:
    import torch

    kept: list[Any] = []

    def keep(step: int, device: Any) -> None:
        if step > ONSET:
            kept.append(torch.empty(size, dtype=torch.uint8, device=device))

    said = first_said(floors_of(steps, keep))
    assert said is not None
    assert ONSET < said <= ONSET + within


def test_evaluations_new_streams_and_a_full_buffer_are_none_in_the_end() -> None:
    import torch

    streams: list[Any] = []
    buffer: list[Any] = []

    def everything(step: int, device: Any) -> None:
        if step % 50 == 0:
            outputs = [torch.randn(256, 1024, device=device) for _ in range(64)]
            del outputs
        if step in (100, 170):
            stream = torch.cuda.Stream()
            streams.append(stream)
            with torch.cuda.stream(stream):
                square = torch.randn(128, 128, device=device)
                (square @ square).sum()
        if step <= 120:
            buffer.append(torch.empty(256 * KIB, dtype=torch.uint8, device=device))

    rank = floors_of(400, everything)
    # While the buffer fills it may be asked about; afterwards nothing is left to be said.
    for rows in range(140, 401):
        assert leak(RankEvidence(0, steps=rank.steps.before(rows))) == []
    assert all(
        finding.severity == "info"
        for rows in range(1, 140)
        for finding in leak(RankEvidence(0, steps=rank.steps.before(rows)))
    )

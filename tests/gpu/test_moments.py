"""On a real GPU: live memory of a recording equals PyTorch's counters, and its lines are told."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from vramscope_analysis.moments import Category, RecordedMemory, growth_between, moment_of
from vramscope_analysis.snapshot import read_snapshot

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

STEPS = 6
COUNTERS = ("allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes")


def record() -> tuple[RecordedMemory, list[tuple[int, dict[str, int]]], int]:
    """Train a little: the recording, (entries, counters) after each step, and the highest."""
    import torch
    from torch import nn

    memory: Any = torch.cuda.memory
    kept: list[Any] = []
    rows: list[tuple[int, dict[str, int]]] = []
    torch.cuda.init()
    memory._record_memory_history("all", context="all", stacks="python", max_entries=1_000_000)
    try:
        torch.cuda.reset_peak_memory_stats()
        model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(STEPS):
            loss = model(torch.randn(512, 1024, device="cuda")).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            kept.append(torch.zeros(1 << 20, device="cuda"))
            stats = torch.cuda.memory_stats()
            entries = len(memory._snapshot()["device_traces"][torch.cuda.current_device()])
            rows.append((entries, {name: stats[f"{name}.all.current"] for name in COUNTERS}))
        highest = torch.cuda.memory_stats()["active_bytes.all.peak"]
        raw = pickle.dumps(memory._snapshot(), protocol=4)
    finally:
        memory._record_memory_history(None)
    return RecordedMemory.of(read_snapshot(raw)), rows, highest


def test_a_recording_tells_what_the_counters_told() -> None:
    made, rows, highest = record()
    for entries, counters in rows:
        moment = moment_of(made, entries - 1)
        assert moment.live_bytes == counters["active_bytes"]
        assert moment.live_bytes - moment.pending_bytes == counters["allocated_bytes"]
        assert moment.requested_bytes == counters["requested_bytes"]
        assert moment.reserved_bytes == counters["reserved_bytes"]
    assert made.live_bytes.max() == highest

    # Model, optimizer and what is kept are told apart by their stacks.
    end = moment_of(made, made.last_moment)
    held = {group.group.category: group.bytes for group in end.by_category}
    weights = (1024 * 4096 * 2 + 4096 + 1024) * 4
    assert weights <= held[Category.PARAMETERS] <= 1.02 * weights
    assert 2 * weights <= held[Category.OPTIMIZER] <= 2.05 * weights
    # The backward pass runs on a thread without Python: its blocks have no stack.
    labels = {source.label for source in made.sources}
    assert "gradients, no Python stack" in labels
    grown = growth_between(made, rows[1][0] - 1, made, rows[-1][0] - 1).rows[0]
    assert grown.label.endswith(" record")
    assert grown.after_blocks - grown.before_blocks == STEPS - 2
    assert grown.bytes == (STEPS - 2) * (4 << 20)

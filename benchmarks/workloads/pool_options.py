"""Memory pools with options: one whose segments stay whole, and one that helps out of memory.

Needs a CUDA device and torch 2.10.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from benchmarks.trace_recorder import TraceRecorder
from benchmarks.workloads.random_memory import MIB, random_memory

STEPS = 8
LIMIT_BYTES = 1600 * MIB


def run(recorder: TraceRecorder) -> object:
    """Use one, then the other; what is returned is alive at the end."""
    whole = torch.cuda.MemPool(no_split=True)
    kept = _whole_segments(whole, recorder)
    _last_resort(recorder)
    recorder.end_step()
    return whole, kept


def _whole_segments(pool: Any, recorder: TraceRecorder) -> list[torch.Tensor]:
    """Memory of random sizes from a pool that never splits a segment."""
    rng = random.Random(0)
    kept: list[torch.Tensor] = []
    for _ in range(STEPS):
        with torch.cuda.use_mem_pool(pool):
            for _ in range(4):
                kept.append(random_memory(rng))
        for _ in range(3):
            del kept[rng.randrange(len(kept))]
        recorder.end_step()
    return kept


def _last_resort(recorder: TraceRecorder) -> None:
    """A pool that lends its free memory to the rest of the process when nothing else is left."""
    pool = torch.cuda.MemPool(use_on_oom=True)
    with torch.cuda.use_mem_pool(pool):
        held = torch.empty(400 * MIB, dtype=torch.uint8, device="cuda")
    del held
    recorder.end_step()
    recorder.set_limit(LIMIT_BYTES)
    kept: list[torch.Tensor] = []
    try:
        while True:
            kept.append(torch.empty(150 * MIB, dtype=torch.uint8, device="cuda"))
            recorder.end_step()
    except torch.cuda.OutOfMemoryError:
        recorder.end_step()
    del kept[::2]
    kept.append(torch.empty(300 * MIB, dtype=torch.uint8, device="cuda"))
    recorder.end_step()
    del kept, pool
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()

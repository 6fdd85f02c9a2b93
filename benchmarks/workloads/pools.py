"""Memory pools of the user's own (``torch.cuda.MemPool``): beside, after and within each other.

Needs a CUDA device and torch 2.8.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import torch

from benchmarks.trace_recorder import TraceRecorder
from benchmarks.workloads.random_memory import random_memory

STEPS = 12


def run(recorder: TraceRecorder) -> object:
    """Allocate in and beside pools, one row a step; what is returned is alive at the end."""
    torch.manual_seed(0)
    rng = random.Random(0)
    kept: deque[Any] = deque(maxlen=30)
    pools = [torch.cuda.MemPool(), torch.cuda.MemPool(), torch.cuda.MemPool()]
    stream = torch.cuda.Stream()
    for step in range(STEPS):
        for index in range(len(pools)):
            with torch.cuda.use_mem_pool(pools[index]):
                kept.extend(random_memory(rng) for _ in range(6))
                if step % 3 == 0:
                    with torch.cuda.stream(stream):
                        kept.append(random_memory(rng))
                if step % 4 == 1:
                    torch.cuda.empty_cache()  # does nothing in here since 2.8
        kept.extend(_nested(pools, stream, rng))
        kept.extend(random_memory(rng) for _ in range(4))
        for _ in range(rng.randrange(6)):
            del kept[rng.randrange(len(kept))]
        if step % 5 == 4:
            torch.cuda.empty_cache()
        recorder.end_step()
        if step == STEPS // 2:
            kept.clear()
            recorder.end_step()
            pools.pop(0)  # with it goes its memory
            recorder.end_step()
    return pools, kept


def _nested(pools: list[Any], stream: torch.cuda.Stream, rng: random.Random) -> list[Any]:
    """One pool within another; the free of what another stream used waits for the scope to end."""
    with torch.cuda.use_mem_pool(pools[0]):
        outer = [random_memory(rng), random_memory(rng)]
        with torch.cuda.use_mem_pool(pools[1]):
            inner = [random_memory(rng), random_memory(rng)]
        outer.append(random_memory(rng))
        outer[0].record_stream(stream)
        del outer[0]
    return outer + inner

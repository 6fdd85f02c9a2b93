"""Memory pools of the user's own: ``torch.cuda.MemPool``, with and without its options.

Needs a CUDA device; ``use_on_oom`` needs torch 2.8, ``no_split`` 2.10.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import torch

from benchmarks.trace_recorder import TraceRecorder

STEPS = 12
MIB = 1 << 20
LIMIT_BYTES = 1600 * MIB


def run(recorder: TraceRecorder) -> object:
    """Allocate in and beside pools, one row a step; what is returned is alive at the end."""
    torch.manual_seed(0)
    rng = random.Random(0)
    _last_resort(recorder)
    recorder.end_step()
    kept: deque[Any] = deque(maxlen=30)
    pools = [torch.cuda.MemPool(), torch.cuda.MemPool(), torch.cuda.MemPool(no_split=True)]
    stream = torch.cuda.Stream()
    for step in range(STEPS):
        for index in range(len(pools)):
            with torch.cuda.use_mem_pool(pools[index]):
                kept.extend(_bytes(rng) for _ in range(6))
                if step % 3 == 0:
                    with torch.cuda.stream(stream):
                        kept.append(_bytes(rng))
                if step % 4 == 1:
                    torch.cuda.empty_cache()  # does nothing in here since 2.8
        kept.extend(_bytes(rng) for _ in range(4))
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


def _bytes(rng: random.Random) -> torch.Tensor:
    """Memory of a random size, small and large alike."""
    size_bytes = rng.choice((rng.randrange(1, MIB), rng.randrange(MIB, 24 * MIB)))
    return torch.empty(size_bytes, dtype=torch.uint8, device="cuda")

"""A job whose allocator settings change while it runs, with live memory from before each change."""

from __future__ import annotations

import random
from collections import deque

import torch

from benchmarks.trace_recorder import TraceRecorder
from benchmarks.workloads.language_model import LanguageModel, text
from benchmarks.workloads.random_memory import MIB, random_memory

STEPS_PER_PHASE = 2
KEPT = 6

# After each but the first: whether the cache is emptied first.
PHASES = (
    ("", False),
    ("expandable_segments:True", False),
    ("expandable_segments:True,roundup_power2_divisions:4", True),
    ("expandable_segments:False,max_split_size_mb:32", False),
    ("max_split_size_mb:100,roundup_power2_divisions:[16:2,64:4,>:8]", False),
    ("expandable_segments:True", True),
    ("expandable_segments:False,max_non_split_rounding_mb:48,max_split_size_mb:32", False),
    ("large_segment_size_mb:40", True),
)


def run(recorder: TraceRecorder) -> None:
    """Train under each setting in turn, one row a step."""
    torch.manual_seed(0)
    rng = random.Random(0)
    model = LanguageModel(layers=1).to(recorder.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept: deque[torch.Tensor] = deque(maxlen=KEPT)
    for conf, empties in PHASES:
        if empties:
            torch.cuda.empty_cache()
        if conf and recorder.records:
            _change_settings(conf)
        for _ in range(STEPS_PER_PHASE):
            model(text(rng, recorder.device, batch=8, lengths=(64, 600))).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            for _ in range(KEPT):
                kept.append(random_memory(rng, recorder.device, 90 * MIB))
                if rng.random() < 0.4:
                    del kept[rng.randrange(len(kept))]
            recorder.end_step()


def _change_settings(conf: str) -> None:
    if hasattr(torch._C, "_accelerator_setAllocatorSettings"):  # from 2.10 on
        torch._C._accelerator_setAllocatorSettings(conf)
    else:
        torch.cuda.memory._set_allocator_settings(conf)

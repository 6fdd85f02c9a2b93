"""Trains on a GPU and dumps a snapshot whose trace does not reach back to the first allocation.

usage: gpu_recorded_late.py SNAPSHOT first|later MAX_ENTRIES

Prints one line of JSON with the events that an unbounded trace would have had.
"""

from __future__ import annotations

import json
import random
import sys

import torch

from benchmarks.workloads.language_model import LanguageModel, text

STEPS = 6


def main() -> None:
    path, begin, max_entries = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.manual_seed(0)
    rng = random.Random(0)
    if begin == "first":
        record(max_entries)
    model = LanguageModel(layers=4).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(STEPS):
        if begin == "later" and step == STEPS // 2:
            record(max_entries)
        model(text(rng, "cuda", batch=8, lengths=(64, 512))).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.memory._dump_snapshot(path)
    stats = torch.cuda.memory_stats()
    names = ("allocation.all.allocated", "allocation.all.freed", "segment.all.allocated")
    print(json.dumps({name: stats[name] for name in names}))


def record(max_entries: int) -> None:
    torch.cuda.memory._record_memory_history(max_entries=max_entries, context=None)


if __name__ == "__main__":
    main()

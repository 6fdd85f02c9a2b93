"""Steps of very different lengths, whose pieces do not fit each other.

usage: gpu_in_pieces.py [SNAPSHOT]    prints the peak of reserved memory; records into SNAPSHOT
"""

from __future__ import annotations

import pickle
import random
import sys

import torch
from torch import nn

STEPS = 40


def main(snapshot: str | None) -> None:
    torch.manual_seed(0)
    lengths = random.Random(0)
    torch.cuda.init()
    if snapshot is not None:
        torch.cuda.memory._record_memory_history("all", context=None, stacks="python")
    layers = [
        nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(8)
    ]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        x = torch.randn(lengths.randrange(500, 12_000), 512, device="cuda")
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    if snapshot is not None:
        with open(snapshot, "wb") as file:
            pickle.dump(torch.cuda.memory._snapshot(), file, protocol=4)
    print(torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)

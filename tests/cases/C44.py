"""C44: a rank restores a checkpoint onto the first device, which is not its own (NVIDIA/apex#222).

usage: C44.py FILE        started once for each rank, with RANK and WORLD_SIZE
"""

from __future__ import annotations

import os
import sys
import time

import torch
from torch import nn

STEPS = 300


def main(path: str) -> None:
    torch.manual_seed(0)
    rank = int(os.environ["RANK"])
    if rank == 0:
        torch.save(torch.randn(32 << 20, device="cuda:0"), path + ".part")
        os.rename(path + ".part", path)
    while not os.path.exists(path):
        time.sleep(0.1)
    state = torch.load(path)  # culprit
    torch.cuda.set_device(rank % torch.cuda.device_count())
    del state
    model = nn.Linear(512, 512).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        model(torch.randn(64, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.03)


if __name__ == "__main__":
    main(sys.argv[1])

"""C47: a run of a size, to be compared with one of half of it (ISEEKYAN/Megatron-LM#150).

usage: C47.py LAYERS
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 60


def main(layers: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(layers))).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        model(torch.randn(16, 1024, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)


if __name__ == "__main__":
    main(int(sys.argv[1]))

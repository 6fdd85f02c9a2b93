"""C55: a workspace that the first matrix product brings, once a stream (pytorch/pytorch#95668)."""

from __future__ import annotations

import time
from contextlib import nullcontext

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 400


def main() -> None:
    torch.manual_seed(0)
    scale = nn.Parameter(torch.randn(256, 256, device=DEVICE))
    linear = nn.Linear(256, 1, device=DEVICE)
    optimizer = torch.optim.Adam([scale, *linear.parameters()])
    side = torch.cuda.Stream() if DEVICE == "cuda" else None
    for step in range(STEPS):
        x = torch.randn(256, 256, device=DEVICE) * scale
        if step >= 100:
            x = linear(x)  # culprit
        if step >= 200:
            with torch.cuda.stream(side) if side else nullcontext():
                linear(torch.randn(256, 256, device=DEVICE)).sum().item()
        x.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)


if __name__ == "__main__":
    main()

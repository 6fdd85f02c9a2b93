"""A tensor more in each step, from some step on: how soon is its line known?

usage: steady_leak.py KIB STEP_MS STEPS
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ONSET = 60


def main(size_bytes: int, step_s: float, steps: int) -> None:
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).to(DEVICE)
    optimizer: Any = torch.optim.Adam(model.parameters())
    kept: list[Tensor] = []
    due_s = time.monotonic()
    for step in range(1, steps + 1):
        model(torch.randn(32, 64, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step > ONSET:
            kept.append(torch.empty(size_bytes, dtype=torch.uint8, device=DEVICE))  # culprit
        # The bound is one of steps: each takes as long as it is said to.
        due_s += step_s
        time.sleep(max(due_s - time.monotonic(), 0.0))


if __name__ == "__main__":
    main(int(sys.argv[1]) << 10, int(sys.argv[2]) / 1e3, int(sys.argv[3]))

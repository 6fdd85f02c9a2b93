"""Tensors that stay lie in the segments of the first steps' blocks; until it is terminated."""

from __future__ import annotations

import signal
import sys
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20
KEPT_STEPS = 8


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    model = nn.Linear(64, 64).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept: list[torch.Tensor] = []
    step = 0
    while True:
        if step < KEPT_STEPS:
            # What comes in its place leaves 18 MiB: too little for the next of either.
            whole = torch.empty(40 * MIB // 4, device=DEVICE)
            del whole
            kept.append(torch.empty(22 * MIB // 4, device=DEVICE))
        scratch = torch.empty(16 * MIB // 4, device=DEVICE)
        model(torch.randn(8, 64, device=DEVICE)).square().mean().backward()
        del scratch
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        time.sleep(0.05)


if __name__ == "__main__":
    main()

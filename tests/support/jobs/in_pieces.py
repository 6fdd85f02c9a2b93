"""Steps that need little at once, in pieces that do not fit each other; until it is terminated."""

from __future__ import annotations

import random
import signal
import sys
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sizes = random.Random(0)
    model = nn.Linear(64, 64).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        held: list[torch.Tensor] = []
        for _ in range(10):
            held.append(torch.empty(sizes.randrange(4, 40) * MIB // 4, device=DEVICE))
            if len(held) > 5:
                held.pop(sizes.randrange(len(held)))
        held.clear()
        model(torch.randn(8, 64, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.05)


if __name__ == "__main__":
    main()

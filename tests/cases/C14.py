"""C14: large tensors in cycles that only the oldest generation collects (pytorch/pytorch#95462)."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 500
MIB = 1 << 20


class Cycle:
    """Refers to itself."""

    def __init__(self, payload: Tensor) -> None:
        self.payload = payload
        self.me = self  # culprit


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(STEPS):
        model(torch.randn(32, 128, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        node = Cycle(torch.empty(6 * MIB // 4, device=DEVICE))
        if step % 5 == 0:
            junk = [{"i": [i]} for i in range(6_000)]  # ages the cycle
            del junk
        assert node.me is node
        time.sleep(0.01)


if __name__ == "__main__":
    main()

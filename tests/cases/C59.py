"""C59: out of memory while garbage could be collected (pytorch/pytorch#50185).

usage: C59.py [control]    control: the garbage is collected every ten steps
"""

from __future__ import annotations

import gc
import sys
import time

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20
CAP = 420 * MIB


class Node:
    """Refers to itself."""

    def __init__(self, payload: Tensor) -> None:
        self.payload = payload
        self.me = self  # culprit


def main(control: bool) -> None:
    torch.manual_seed(0)
    torch.cuda.set_per_process_memory_fraction(CAP / torch.cuda.mem_get_info()[1])
    model = nn.Linear(256, 256).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(120):
        model(torch.randn(32, 256, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step >= 30:
            node = Node(torch.empty(20 * MIB // 4, device=DEVICE))
            del node
        if control and step % 10 == 0:
            gc.collect()
        time.sleep(0.015)


if __name__ == "__main__":
    main("control" in sys.argv)

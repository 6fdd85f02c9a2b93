"""Runs out of a GPU's memory in one of several ways, below a cap of its own. For tests on a GPU.

usage: gpu_ooms.py long_sample | evaluation | state | garbage | carved
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import torch
from torch import nn

MIB = 1 << 20
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
"""Emulated elsewhere."""


class Cycle:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self, mib: int) -> None:
        self.payload = block(mib)
        self.me = self


def block(mib: int) -> torch.Tensor:
    return torch.empty(mib * MIB, dtype=torch.uint8, device=DEVICE)


def cap(mib: int) -> None:
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(mib * MIB / total)


def main(kind: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(4))).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())

    def step(rows: int = 64) -> None:
        model(torch.randn(rows, 512, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    if kind == "state":
        large = nn.Linear(8192, 8192, device=DEVICE)  # 256 MiB
        adam = torch.optim.Adam(large.parameters())
        large(torch.randn(4, 8192, device=DEVICE)).sum().backward()  # the gradients: 256 MiB more
        cap(900)
        adam.step()
        return
    for _ in range(20):
        step()
    if kind == "long_sample":
        cap(1024)
        step(400_000)
    elif kind == "evaluation":
        cap(1024)
        loader: Any = torch.utils.data.DataLoader(range(4))
        with torch.no_grad():
            for _ in loader:
                model(torch.randn(600_000, 512, device=DEVICE))
    elif kind == "garbage":
        gc.disable()
        cap(1024)
        for _ in range(40):
            Cycle(100)
            step()
    elif kind == "carved":
        cap(1024)
        workspace = block(700)
        del workspace
        kept = [block(40) for _ in range(6)]
        for _ in range(5):
            step()
        workspace = block(700)
        del kept


if __name__ == "__main__":
    main(sys.argv[1])

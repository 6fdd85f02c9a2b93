"""Data-parallel training on the CPU, in which ranks stop using as much memory as each other.

unequal_ranks.py FILE: once the file is there, rank 1 needs much more once, after a few steps, than
it does in training, rank 2 gets twelve times the batch of the others, and rank 3 may have little
and asks for a little more in every step, which nothing in its cache fits.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MIB = 1 << 20
WIDTH = 64
ROWS = 32
KEPT_PER_ROW_BYTES = MIB
LARGER = 12
LARGE_BATCH_RANK = 2
LARGE_CACHE_RANK = 1
ONCE_STEP = 5
ONCE_BYTES = 512 * MIB
FLUSHING_RANK = 3
SHARE_OF_DEVICE = 0.09
SIZES_BYTES = [size * MIB for size in range(88, 108, 4)]


class Kept(torch.autograd.Function):  # type: ignore[misc]  # torch is untyped here
    """Keeps something for the backward pass, and computes nothing with it: processors are few."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(torch.empty(len(x), KEPT_PER_ROW_BYTES // 4))
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0]


class Model(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """One layer, and what it keeps of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Kept.apply(self.layer(x)).square().mean()


def train(model: nn.Module, optimizer: Any, batch: torch.Tensor) -> None:
    """One step."""
    optimizer.zero_grad()
    model(batch).backward()
    optimizer.step()
    time.sleep(0.05)


def main(file: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(ROWS, WIDTH)
    while not file.exists():
        train(model, optimizer, batch)
    if rank == LARGE_BATCH_RANK:
        batch = torch.randn(ROWS * LARGER, WIDTH)
    if rank == FLUSHING_RANK:
        torch.cuda.set_per_process_memory_fraction(SHARE_OF_DEVICE)
    for step in itertools.count():  # until the launcher is told to end
        if rank == LARGE_CACHE_RANK and step == ONCE_STEP:
            torch.empty(ONCE_BYTES, dtype=torch.uint8)
        if rank == FLUSHING_RANK:
            at = step % len(SIZES_BYTES)
            if at == 0:
                torch.cuda.empty_cache()
            torch.empty(SIZES_BYTES[at], dtype=torch.uint8)
        train(model, optimizer, batch)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

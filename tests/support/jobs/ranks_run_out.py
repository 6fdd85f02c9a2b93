"""Ranks that train until a file is there; one has less room than the others. For --emulate.

    python ranks_run_out.py FILE together|alone|raise

With 128 MiB a batch of 8 fits on each rank, and one of 16 on all but the last. What that one does
then is told: all of them leave their batch out together, it does alone, or it ends.
Prints each epoch of a rank as JSON: its samples, and the sizes of its batches.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import distributed

SAMPLES = 1920
"""So many that the change does not fall on the last batch of an epoch, which may be a half."""
WIDTH = 1 << 18
BALLAST = 56 << 20


def is_over(end: Path) -> bool:
    """Whether one rank has seen the file: the same on all."""
    seen = torch.tensor(float(end.exists()))
    distributed.all_reduce(seen, distributed.ReduceOp.MAX)
    return bool(seen)


def average(weight: Any) -> None:
    """The mean of all ranks' gradients."""
    distributed.all_reduce(weight.grad)
    weight.grad /= distributed.get_world_size()


def backward(weight: Any, batch: Any, way: str) -> bool:
    """A forward and a backward pass; whether there was room for them."""
    try:
        (batch * weight).square().mean().backward()
    except torch.cuda.OutOfMemoryError:
        if way == "raise":
            raise
        weight.grad = None
        return False
    return True


def main(end: Path, way: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    ballast = torch.zeros(BALLAST if rank == ranks - 1 else 1, dtype=torch.uint8)
    weight = torch.nn.Parameter(torch.ones(1, WIDTH))
    optimizer = torch.optim.SGD([weight], lr=1e-6)
    numbers: Any = torch.arange(float(SAMPLES))[:, None]
    sampler: Any = torch.utils.data.DistributedSampler(numbers)
    data: Any = torch.utils.data.DataLoader(numbers, batch_size=8, sampler=sampler)
    while not is_over(end):
        seen: list[int] = []
        sizes: list[int] = []
        for batch in data:
            seen += batch[:, 0].int().tolist()
            sizes.append(len(batch))
            fitted = backward(weight, batch, way)
            if way == "together":
                fits = torch.tensor(float(fitted))
                distributed.all_reduce(fits, distributed.ReduceOp.MIN)
                fitted = bool(fits)
            if not fitted:
                continue
            average(weight)
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.02)
        sys.stdout.write(f"epoch {json.dumps([rank, seen, sizes])}\n")
        sys.stdout.flush()
        if way == "alone" and 16 in sizes:
            break  # it is a batch behind from now on
    del ballast
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

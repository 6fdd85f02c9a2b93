"""Training on a GPU that runs out of memory where it is told to, within a cap of its own."""

from __future__ import annotations

import argparse
import os
import re
import signal
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

LIMIT_BYTES = 2048 << 20
WIDTH = 1024


def take_everything() -> None:
    """Keep more than there is."""
    kept = []
    while True:
        kept.append(torch.empty(32 << 20, device="cuda", dtype=torch.uint8))


class Greedy(torch.autograd.Function):  # type: ignore[misc]  # torch is not type-checked
    """Takes everything in its backward pass, on autograd's own thread."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        take_everything()
        return gradients[0]


class GreedyModule(nn.Module):  # type: ignore[misc]  # torch is not type-checked
    """Takes everything in its forward pass."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Never returns."""
        take_everything()
        return values


def greedy_hook(optimizer: Any, args: Any, options: Any) -> None:
    """Takes everything in a step of the optimizer, which calls it from its own code."""
    take_everything()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    """Steps without any trouble."""
    for _ in range(steps):
        model(torch.randn(64, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def run_out(model: nn.Module, optimizer: torch.optim.Optimizer, place: str) -> None:
    """Run out of memory there."""
    values = torch.randn(64, WIDTH, device="cuda", requires_grad=True)
    if place == "forward":
        nn.Sequential(model, GreedyModule())(values)
    elif place == "backward":
        greedy: Any = Greedy.apply
        greedy(model(values)).square().mean().backward()
    else:
        model(values).square().mean().backward()
        handle = optimizer.register_step_pre_hook(greedy_hook)
        try:
            optimizer.step()
        finally:
            handle.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", default="forward")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--end", choices=["raise", "go on", "kill"], default="raise")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--ddp", action="store_true")
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--linger", type=float, default=0.0)
    options = parser.parse_args()
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(rank)
    total_bytes = torch.cuda.get_device_properties(rank).total_memory
    torch.cuda.set_per_process_memory_fraction(LIMIT_BYTES / total_bytes, rank)
    if options.ddp:
        dist.init_process_group("nccl")
    if options.record:
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=100_000)
    model: nn.Module = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(8))).cuda()
    if options.ddp:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    train(model, optimizer, options.steps)
    if options.rank in (-1, rank):
        for _ in range(options.times):
            try:
                run_out(model, optimizer, options.place)
            except torch.cuda.OutOfMemoryError as error:
                if options.end == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                if options.end == "raise":
                    raise
                words = re.sub(r"[\d.]+", "N", str(error))
                kind = type(error).__name__
            optimizer.zero_grad()
        left_mib = torch.cuda.memory_allocated() >> 20
        print(kind, words.partition(" is allocated by PyTorch")[0], left_mib, flush=True)
    if options.linger:
        time.sleep(options.linger)
    if not options.ddp:
        train(model, optimizer, options.steps or 1)


if __name__ == "__main__":
    main()

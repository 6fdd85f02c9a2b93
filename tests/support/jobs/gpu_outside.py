"""A CUDA job that begins to use one library after the other, some seconds apart.

    gpu_outside.py [--stage-s=6]

Elementwise training first, then matrix products (cuBLAS), convolutions (cuDNN) and a Fourier
transform (cuFFT). Under torchrun the ranks reduce their gradients over NCCL, and make a second
group half-way.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist


def elementwise(x: Any, weight: Any) -> Any:
    return (x * weight).square().mean()


def with_products(x: Any, weight: Any) -> Any:
    return elementwise(x, weight) + (x @ x.T).mean()


def with_convolutions(x: Any, weight: Any) -> Any:
    image = x.view(1, 1, *x.shape)
    return (
        with_products(x, weight)
        + torch.nn.functional.conv2d(image, weight[:9].view(1, 1, 3, 3)).mean()
    )


def with_transform(x: Any, weight: Any) -> Any:
    return with_convolutions(x, weight) + torch.fft.rfft(x).abs().mean()


STAGES: tuple[Callable[[Any, Any], Any], ...] = (
    elementwise,
    with_products,
    with_convolutions,
    with_transform,
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage-s", type=float, default=6.0)
    options = parser.parse_args()
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    is_distributed = "LOCAL_RANK" in os.environ
    torch.cuda.set_device(rank)
    if is_distributed:
        dist.init_process_group("nccl")
    weight = torch.nn.Parameter(torch.ones(1024, device="cuda"))
    optimizer = torch.optim.Adam([weight], lr=1e-3)
    group = None
    for number, loss in enumerate(STAGES):
        if is_distributed and number == 2:
            group = dist.new_group()
        # Every rank makes as many steps: by a clock they would part, and wait for each other.
        for _ in range(int(options.stage_s / 0.02)):
            optimizer.zero_grad()
            loss(torch.randn(1024, 1024, device="cuda"), weight).backward()
            if is_distributed:
                dist.all_reduce(weight.grad)
                dist.all_reduce(weight.grad, group=group)
            optimizer.step()
            time.sleep(0.02)
        torch.cuda.synchronize()
    if is_distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

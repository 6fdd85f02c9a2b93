"""Data-parallel training whose optimizer takes most of a small device, until it is told to end."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(2048, 4096))  # 32 MiB of parameters
    optimizer = torch.optim.Adam(model.parameters())
    while True:
        optimizer.zero_grad()
        model(torch.randn(8, 2048)).square().mean().backward()
        optimizer.step()
        time.sleep(0.02)


if __name__ == "__main__":
    main()

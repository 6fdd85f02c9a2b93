"""C43: buffers of NCCL are no memory of torch (facebookresearch/fairscale#678)."""

from __future__ import annotations

import os
import time

import torch
import torch.distributed as dist
from torch import nn

STEPS = 550


def main() -> None:
    torch.manual_seed(0)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29531")
    dist.init_process_group("nccl", rank=0, world_size=1)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    groups = []
    for step in range(STEPS):
        model(torch.randn(64, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 50:
            groups.append(dist.new_group([0]))  # culprit
            dist.all_reduce(torch.ones(1, device="cuda"), group=groups[-1])
        time.sleep(0.06)  # groups come seconds apart, as the driver is asked once a second
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

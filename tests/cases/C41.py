"""C40, C41: a plain OOM, settings by the environment (pytorch/pytorch#173049, #119452)."""

from __future__ import annotations

import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20
CAP = 512 * MIB


def main() -> None:
    torch.manual_seed(0)
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(CAP / total)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(80):
        model(torch.randn(64, 512, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 60:
            torch.empty(2 * CAP // 4, device=DEVICE)  # culprit
        time.sleep(0.01)


if __name__ == "__main__":
    main()

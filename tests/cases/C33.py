"""C33: lasting tensors in the segment that a workspace needs again (pytorch/pytorch#35901)."""

from __future__ import annotations

import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20
WORKSPACE = 400 * MIB


def main() -> None:
    torch.manual_seed(0)
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(1.6 * WORKSPACE / total)
    model = nn.Linear(256, 256).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lasting = []
    for step in range(40):
        if step == 0 or step > 30:
            ws = torch.empty(WORKSPACE // 4, device=DEVICE)  # victim
            del ws
        if step == 0:
            for _ in range(6):
                lasting.append(torch.zeros(17 * MIB // 4, device=DEVICE))  # culprit
        model(torch.randn(16, 256, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.02)


if __name__ == "__main__":
    main()

"""C23: autocast keeps copies of the weights for the whole region (ecmwf/anemoi-core#134)."""

from __future__ import annotations

import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 300


def main() -> None:
    torch.manual_seed(0)
    teacher = nn.Sequential(*(nn.Linear(768, 768) for _ in range(12))).to(DEVICE)
    student = nn.Linear(768, 768).to(DEVICE)
    opt = torch.optim.SGD(student.parameters(), lr=0.01)
    for _ in range(STEPS):
        x = torch.randn(4, 768, device=DEVICE)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):  # culprit
            with torch.no_grad():
                target = teacher(x)
            loss = (student(x) - target).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        time.sleep(0.008)


if __name__ == "__main__":
    main()

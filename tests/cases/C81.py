"""C81: a job with many live objects, whose collections cost (ultralytics/ultralytics#25610)."""

from __future__ import annotations

import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 350


def main() -> None:
    torch.manual_seed(0)
    labels = [{"i": i} for i in range(850_000)]
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        model(torch.randn(64, 256, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.012)
    print(len(labels))


if __name__ == "__main__":
    main()

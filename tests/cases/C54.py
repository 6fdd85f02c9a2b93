"""C54: the peak follows the image with most objects so far (ultralytics/ultralytics#25240)."""

from __future__ import annotations

import random
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 500
ANCHORS = 8400


def main() -> None:
    torch.manual_seed(0)
    rng = random.Random(201)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    anchors = torch.rand(ANCHORS, 4, device=DEVICE)
    for _ in range(STEPS):
        boxes = torch.rand(min(500, int(rng.paretovariate(1.7) * 8)), 4, device=DEVICE)
        out = model(torch.randn(64, 64, device=DEVICE))
        pair = (boxes[:, None] - anchors[None]).abs().sum(-1)  # culprit
        loss = out.square().mean() + pair.topk(4).values.mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del pair, loss, out
        time.sleep(0.008)


if __name__ == "__main__":
    main()

"""C61: the batch size was probed with empty images (ultralytics/ultralytics#17514)."""

from __future__ import annotations

import random
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20
CAP = 400 * MIB
ANCHORS = 2100


def loss_of(model: nn.Module, images: int, boxes: int) -> torch.Tensor:
    out = model(torch.randn(images * 64, 64, device=DEVICE))
    anchors = torch.rand(ANCHORS, 4, device=DEVICE)
    targets = torch.rand(images, boxes, 1, 4, device=DEVICE)
    pair = (targets - anchors).abs().sum(-1)  # culprit
    return out.square().mean() + pair.amin(-1).mean()


def probe(model: nn.Module) -> int:
    """The largest batch that stays well below the cap, with one box in each image."""
    images = 2
    while images < 16:
        torch.cuda.reset_peak_memory_stats()
        loss_of(model, images * 2, boxes=1).backward()
        model.zero_grad()
        if torch.cuda.max_memory_allocated() > 0.6 * CAP:
            break
        images *= 2
    return images


def main() -> None:
    torch.manual_seed(0)
    rng = random.Random(3)
    torch.cuda.set_per_process_memory_fraction(CAP / torch.cuda.mem_get_info()[1])
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 64)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    images = probe(model)
    print("batch size", images)
    for step in range(160):
        boxes = 400 if step == 120 else rng.randint(1, 60)
        loss_of(model, images, boxes).backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)


if __name__ == "__main__":
    main()

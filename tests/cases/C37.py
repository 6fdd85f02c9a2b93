"""C37: gathering the state to save it lifts reserved memory for good (pytorch/pytorch#137151)."""

from __future__ import annotations

import io
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 200


def save(model: nn.Module) -> None:
    full = [p.detach().clone() for p in model.parameters()]
    flat = torch.cat([p.reshape(-1) for p in full])  # culprit
    torch.save(flat[:1000].clone(), io.BytesIO())
    del full, flat


def main() -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 1024) for _ in range(8)]
    model = nn.Sequential(*layers).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, STEPS + 1):
        model(torch.randn(4, 1024, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step in (60, 120):
            save(model)
        time.sleep(0.01)


if __name__ == "__main__":
    main()

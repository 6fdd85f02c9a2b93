"""C39: after a resume most of what is reserved is not used (PrimeIntellect-ai/prime-rl#2154)."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def train(model: nn.Module, optimizer: Any, steps: int) -> None:
    for _ in range(steps):
        model(torch.randn(8, 1024, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6))).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train(model, optimizer, 40)
    states = {  # culprit
        name: [torch.randn(p.shape, device=DEVICE) for _ in range(2)]  # culprit
        for name, p in model.named_parameters()
    }
    on_host = {name: [t.cpu().numpy().copy() for t in pair] for name, pair in states.items()}
    train(model, optimizer, 300)  # long enough to be asked what stays
    del states
    train(model, optimizer, 120)
    torch.cuda.empty_cache()
    train(model, optimizer, 10)
    del on_host


if __name__ == "__main__":
    main()

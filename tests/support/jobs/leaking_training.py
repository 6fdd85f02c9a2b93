"""A training job that keeps something of every step, in one line that tests look for."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

kept: list[Tensor] = []


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """One step; its logits stay forever."""
    features = torch.randn(64, 128)
    loss = model(features).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(torch.zeros(512, 512))  # the leak


def main() -> None:
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
    optimizer = torch.optim.Adam(model.parameters())
    while True:
        train_step(model, optimizer)
        if len(kept) > 2000:
            kept.clear()
        time.sleep(0.05)


if __name__ == "__main__":
    main()

"""C28: a clean-up helper that deletes only its own names (huggingface/accelerate#2716)."""

from __future__ import annotations

import gc
import time
from typing import Any

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def release(m: nn.Module, o: Any) -> None:
    del m, o
    gc.collect()
    torch.cuda.empty_cache()


def train(model: nn.Module, optimizer: Any, steps: int) -> None:
    for _ in range(steps):
        model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)


def main() -> None:
    torch.manual_seed(0)
    model1 = nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 512)).to(DEVICE)
    opt1 = torch.optim.Adam(model1.parameters())
    train(model1, opt1, 60)
    release(model1, opt1)  # culprit
    model2 = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(DEVICE)
    opt2 = torch.optim.Adam(model2.parameters())
    train(model2, opt2, 240)


if __name__ == "__main__":
    main()

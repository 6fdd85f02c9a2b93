"""C29: resuming puts the optimizer state onto the device twice (huggingface/transformers#22123).

usage: C29.py [control]    control: map_location="cpu"; nothing stays twice
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(512, 3072), nn.ReLU(), nn.Linear(3072, 512)).to(DEVICE)


def train(model: nn.Module, optimizer: Any, steps: int) -> None:
    for _ in range(steps):
        model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)


def main(place: str | None) -> None:
    torch.manual_seed(0)
    model = net()
    opt = torch.optim.Adam(model.parameters())
    train(model, opt, 20)
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        torch.save({"model": model.state_dict(), "optimizer": opt.state_dict()}, file.name)
        del model, opt
        model = net()
        opt = torch.optim.Adam(model.parameters())
        state = torch.load(file.name, map_location=place)  # culprit
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["optimizer"])
    if place == "cpu":
        del state
    train(model, opt, 240)


if __name__ == "__main__":
    main("cpu" if "control" in sys.argv else None)

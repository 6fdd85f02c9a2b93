"""C22: hooks are removed, what they wrote onto modules is not (jmschrei/tangermeme#84)."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 450
MODELS = 3


def write(m: nn.Module, i: Any, o: Any) -> None:
    m.input = i[0].detach()  # culprit
    m.output = o.detach()  # culprit


def attribute(model: nn.Module) -> None:
    layers = [layer for layer in model.modules() if layer.__class__ is nn.Linear]
    handles = [layer.register_forward_hook(write) for layer in layers]
    with torch.no_grad():
        model(torch.randn(4096, 512, device=DEVICE))
    for handle in handles:
        handle.remove()


def main() -> None:
    torch.manual_seed(0)
    models = [
        nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(DEVICE)
        for _ in range(MODELS)
    ]
    optimizer = torch.optim.SGD([p for m in models for p in m.parameters()], lr=0.01)
    for step in range(STEPS):
        model = models[step % MODELS]
        model(torch.randn(32, 512, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 40:
            attribute(models[step // 50 % MODELS])
        time.sleep(0.01)


if __name__ == "__main__":
    main()

"""C17: a re-entrant checkpoint whose closure reaches its own output (pytorch/pytorch#84413)."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 300


def block(x: Tensor) -> Tensor:
    d = {"pad": x * 0}

    def inner(t: Tensor) -> Tensor:
        return t * 1.0 + 0 * len(d)

    out: Tensor = checkpoint(inner, x, use_reentrant=True)
    d["x"] = out  # culprit
    return out


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 512)).to(DEVICE)
    opt = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        x = torch.randn(1024, 256, device=DEVICE)
        block(model(x)).sum().backward()
        opt.step()
        opt.zero_grad()
        time.sleep(0.01)


if __name__ == "__main__":
    main()

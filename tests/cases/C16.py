"""C16: a backward hook that keeps a gradient with its history (jacobgil/pytorch-grad-cam#88)."""

from __future__ import annotations

import time
import warnings
from typing import Any

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 400


class Cam:
    """Explains an image by the gradient at one layer."""

    g: Tensor

    def __init__(self, m: nn.Sequential) -> None:
        self.handle = m[1].register_full_backward_hook(self.keep)

    def keep(self, module: nn.Module, gi: Any, go: Any) -> None:
        self.g = go[0]  # culprit


def main() -> None:
    warnings.filterwarnings("ignore", "Using backward")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        model(torch.randn(64, 256, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 10:
            cam = Cam(model)
            model(torch.randn(2048, 256, device=DEVICE)).square().sum().backward(create_graph=True)
            cam.g.abs().mean().item()
            cam.handle.remove()
            del cam
            optimizer.zero_grad()
        time.sleep(0.01)


if __name__ == "__main__":
    main()

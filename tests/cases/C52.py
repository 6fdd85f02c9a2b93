"""C52: the learned kernel grows by schedule (david-knigge/ccnn#11)."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 400


class GrowingKernel(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """A convolution by hand, whose kernel is made by a small network."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.kernel_length = 5
        self.make = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, channels))

    def forward(self, x: Tensor) -> Tensor:
        where = torch.linspace(-1, 1, self.kernel_length, device=x.device)[:, None]
        kernel = self.make(where)
        pad = self.kernel_length // 2
        windows = nn.functional.pad(x, (pad, pad)).unfold(-1, self.kernel_length, 1).contiguous()
        return torch.einsum("bclk,kc->bcl", windows, kernel)


def main() -> None:
    torch.manual_seed(0)
    model = GrowingKernel(16).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(2, 16, 512, device=DEVICE)
    for step in range(STEPS):
        model.kernel_length = 5 + 2 * (step * 98 // (STEPS - 1))
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.004)


if __name__ == "__main__":
    main()

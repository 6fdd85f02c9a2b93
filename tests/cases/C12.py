"""C12: a module that stores one of its own bound methods (pytorch/pytorch#128211)."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TRIALS = 14


class M(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(512, 3072)
        self.last = nn.Linear(3072, 512)
        self.which = self.foo  # culprit

    def foo(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu())

    def forward(self, x: Tensor) -> Tensor:
        return self.which(x)


def main() -> None:
    torch.manual_seed(0)
    for _ in range(TRIALS):
        m = M().to(DEVICE)
        opt = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9)
        for _ in range(40):
            m(torch.randn(8, 512, device=DEVICE)).square().mean().backward()
            opt.step()
            opt.zero_grad()
            time.sleep(0.01)
        del m, opt


if __name__ == "__main__":
    main()

"""C18: an object on ctx that owns the output of its Function (pytorch/pytorch#52140)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 400


class F(torch.autograd.Function):  # type: ignore[misc]  # torch is untyped here
    @staticmethod
    def forward(ctx: Any, fcn: Callable[[Tensor], Tensor], y: Tensor, p: Tensor) -> Tensor:
        ctx.fcn = fcn  # culprit
        return fcn(y)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, grads[0]


class Solver:
    """Solves when it is made, and keeps its solution."""

    def __init__(self, a: Tensor) -> None:
        self.a = a
        self.sol = F.apply(self.rhs, torch.ones_like(a), a)

    def rhs(self, y: Tensor) -> Tensor:
        return self.a.detach() * y


def main() -> None:
    torch.manual_seed(0)
    a = nn.Parameter(torch.randn(1024, 2048, device=DEVICE))
    model = nn.Linear(256, 256).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        model(torch.randn(64, 256, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 5:
            solver = Solver(a)
            del solver
        time.sleep(0.01)


if __name__ == "__main__":
    main()

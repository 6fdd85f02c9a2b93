"""C11: lru_cache on a method keeps every instance of a module (huggingface/transformers#45708)."""

from __future__ import annotations

import gc
import time
from functools import lru_cache

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MODELS = 8


class PosEnc(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(2048, 4096))

    @lru_cache  # noqa: B019  # the case
    def grid(self, h: int, w: int) -> Tensor:  # culprit
        return torch.ones(h, w, device=DEVICE) + self.table.mean()


class Net(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self, positions: PosEnc) -> None:
        super().__init__()
        self.positions = positions
        self.body = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + self.positions.grid(64, 64)


def main() -> None:
    torch.manual_seed(0)
    for _ in range(MODELS):
        m = Net(PosEnc()).to(DEVICE)
        opt = torch.optim.Adam(m.parameters())
        for _ in range(50):
            m(torch.randn(64, 64, device=DEVICE)).square().mean().backward()
            opt.step()
            opt.zero_grad()
            time.sleep(0.01)
        del m, opt
        gc.collect()


if __name__ == "__main__":
    main()

"""C21: a reused helper keeps the optimizers of earlier trainings (huggingface/accelerate#84)."""

from __future__ import annotations

import gc
import time
from typing import Any, ClassVar

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TRIALS = 7


class Session:
    """Prepares what is trained, and never forgets it."""

    opts: ClassVar[list[Any]] = []

    def prepare(self, m: nn.Module, o: Any) -> tuple[nn.Module, Any]:
        self.opts.append(o)  # culprit
        return m, o


def main() -> None:
    torch.manual_seed(0)
    s = Session()
    for _ in range(TRIALS):
        net = nn.Sequential(nn.Linear(256, 3072), nn.ReLU(), nn.Linear(3072, 256)).to(DEVICE)
        m, o = s.prepare(net, torch.optim.Adam(net.parameters()))
        for _ in range(50):
            m(torch.randn(8, 256, device=DEVICE)).square().mean().backward()
            o.step()
            o.zero_grad(set_to_none=False)
            time.sleep(0.008)
        del m, o, net
        gc.collect()


if __name__ == "__main__":
    main()

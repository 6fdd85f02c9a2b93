"""C08: a metric list of validation that is never cleared (Lightning-AI/pytorch-lightning#14270)."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import ClassVar

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 500


class T:
    """A trainer."""

    results: ClassVar[defaultdict[str, list[Tensor]]] = defaultdict(list)

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 1024)).to(DEVICE)
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def train_step(self) -> None:
        loss = self.model(torch.randn(64, 128, device=DEVICE)).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def evaluate(self) -> None:
        with torch.no_grad():
            for _ in range(4):
                pred = self.model(torch.randn(1024, 128, device=DEVICE))
                for k in ("acc", "pck"):
                    self.results[k].append(pred.detach().clone())  # culprit
        print(*(f"{k} {torch.stack(v[-4:]).mean():.3f}" for k, v in self.results.items()))


def main() -> None:
    torch.manual_seed(0)
    trainer = T()
    for step in range(1, STEPS + 1):
        trainer.train_step()
        if step % 50 == 0:
            trainer.evaluate()
        time.sleep(0.01)


if __name__ == "__main__":
    main()

"""C09: a metric that keeps all predictions until it is reset (Lightning-AI/torchmetrics#1094)."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 400


class Metric:
    """Must see everything at once, so it keeps everything."""

    def __init__(self) -> None:
        self.preds: list[Tensor] = []
        self.target: list[Tensor] = []

    def update(self, preds: Tensor, target: Tensor) -> None:
        self.preds.append(preds.detach())
        self.target.append(target)

    def compute(self) -> Tensor:
        return (torch.cat(self.preds) - torch.cat(self.target)).square().mean()

    def reset(self) -> None:
        self.preds, self.target = [], []


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 512)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    metric = Metric()
    for _ in range(STEPS):
        x = torch.randn(256, 128, device=DEVICE)
        y = torch.randn(256, 512, device=DEVICE)
        pred = model(x)
        loss = nn.functional.mse_loss(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        metric.update(pred, y)  # culprit
        time.sleep(0.01)


if __name__ == "__main__":
    main()

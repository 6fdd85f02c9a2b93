"""C06: what validation returns is kept until its end (Lightning-AI/pytorch-lightning#8453)."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 400


def validate(model: nn.Module, loader: DataLoader[tuple[Tensor]]) -> None:
    outs = []
    with torch.no_grad():
        for (batch,) in loader:
            output = model(batch.to(DEVICE))
            outs.append({"x": output, "loss": output.square().mean()})  # culprit
            del output
            time.sleep(0.05)


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 2048)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(TensorDataset(torch.randn(24 * 1024, 128)), batch_size=1024)
    for step in range(1, STEPS + 1):
        loss = model(torch.randn(64, 128, device=DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del loss
        if step % 80 == 0:
            validate(model, loader)
        time.sleep(0.01)


if __name__ == "__main__":
    main()

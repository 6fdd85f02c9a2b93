"""C56: an evaluation that collects all logits (huggingface/transformers#12878)."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 470


def evaluate(model: nn.Module, loader: DataLoader[tuple[Tensor]]) -> float:
    preds: Tensor | None = None
    with torch.no_grad():
        for (xb,) in loader:
            logits = model(xb.to(DEVICE))
            preds = logits if preds is None else torch.cat([preds, logits])  # culprit
            del logits
            time.sleep(0.03)
    assert preds is not None
    return float(preds.argmax(-1).float().mean())


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4096)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.randn(40 * 128, 64)), batch_size=128)
    for step in range(1, STEPS + 1):
        model(torch.randn(4, 64, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 150 == 0:
            print(f"accuracy {evaluate(model, loader):.3f}")
        time.sleep(0.003)


if __name__ == "__main__":
    main()

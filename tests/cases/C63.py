"""C63: an OOM in evaluation shrinks the training batch (huggingface/transformers#46809)."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20
CAP = 300 * MIB


def evaluate(model: nn.Module, loader: DataLoader[tuple[Tensor]]) -> None:
    model.eval()
    with torch.no_grad():
        for (xb,) in loader:
            model(xb.to(DEVICE))  # culprit
            time.sleep(0.01)
    model.train()


def train(model: nn.Module, loader: DataLoader[tuple[Tensor]], batch: int) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(40):
        model(torch.randn(batch, 128, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)
    evaluate(model, loader)


def main() -> None:
    torch.manual_seed(0)
    torch.cuda.set_per_process_memory_fraction(CAP / torch.cuda.mem_get_info()[1])
    model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 2048)).to(DEVICE)
    # The last batches are the large ones, as the longest texts at the end of a data set.
    data = TensorDataset(torch.randn(3 * 32768, 128))
    loader = DataLoader(data, batch_size=32768)
    batch = 64
    while batch >= 16:
        try:
            train(model, loader, batch)
        except torch.cuda.OutOfMemoryError:
            batch //= 2
            print("batch size", batch)


if __name__ == "__main__":
    main()

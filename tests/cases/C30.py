"""C30: workers copy the data set page by page in host memory (tier4/autoware-ml#78).

usage: C30.py [STEPS]    a whole epoch is 3,000
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ITEMS = 600_000


class Records(Dataset[Any]):  # type: ignore[misc]  # torch is untyped here
    def __init__(self) -> None:
        self.data = [{"i": i, "s": str(i) * 50} for i in range(ITEMS)]  # culprit

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.data[index]


def lengths(items: list[dict[str, Any]]) -> torch.Tensor:
    return torch.tensor([[float(len(item["s"]))] for item in items])


def main(steps: int) -> None:
    torch.manual_seed(0)
    loader = DataLoader(
        Records(),
        batch_size=200,
        shuffle=True,
        num_workers=2,
        collate_fn=lengths,
        multiprocessing_context="fork",
    )
    model = nn.Sequential(nn.Linear(1, 256), nn.ReLU(), nn.Linear(256, 1)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for _, batch in zip(range(steps), loader, strict=False):
        model(batch.to(DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)

"""C50: one sample that is much longer than all before (meta-llama/llama-cookbook#792)."""

from __future__ import annotations

import random
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20
CAP = 400 * MIB


class Reader(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Pays attention from every place to every place."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        self.out = nn.Linear(64, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        weights = (x @ x.mT).softmax(-1)  # culprit
        return self.out(weights @ x)


def main() -> None:
    torch.manual_seed(0)
    rng = random.Random(0)
    torch.cuda.set_per_process_memory_fraction(CAP / torch.cuda.mem_get_info()[1])
    model = Reader().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(250):
        length = 6000 if step == 150 else rng.randint(100, 800)
        tokens = torch.randint(1000, (1, length), device=DEVICE)
        try:
            model(tokens).square().mean().backward()
        except torch.cuda.OutOfMemoryError:
            print("skipped", length)
            continue
        finally:
            optimizer.zero_grad()
        optimizer.step()
        time.sleep(0.01)


if __name__ == "__main__":
    main()

"""C38: cached blocks of an evaluation starve the next epoch (pykeen/pykeen#433).

usage: C38.py [control]    control: the cache is emptied after the evaluation
"""

from __future__ import annotations

import sys
import time

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20
STEPS = 130


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    activations = [torch.empty(50 * MIB // 4, device=DEVICE) for _ in range(4)]  # victim
    model(torch.randn(64, 512, device=DEVICE)).square().mean().backward()
    del activations
    optimizer.step()
    optimizer.zero_grad()


def evaluate(model: nn.Module) -> list[Tensor]:
    scores, kept = [], []
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(64, 512, device=DEVICE))
            scores.append(torch.empty(90 * MIB // 4, device=DEVICE))  # culprit
            kept.append(torch.empty(2 * MIB // 4, device=DEVICE))
    # Each small result goes where the large scores were, and stays there.
    del scores
    return [kept.pop(0).clone() for _ in range(2)]  # culprit


def main(control: bool) -> None:
    torch.manual_seed(0)
    total = torch.cuda.mem_get_info()[1]
    model = nn.Linear(512, 512).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    results = []
    for step in range(1, STEPS + 1):
        train_step(model, optimizer)
        if step == 10:
            peak = torch.cuda.max_memory_reserved()
            torch.cuda.set_per_process_memory_fraction(1.3 * peak / total)
        if step == 100:
            results += evaluate(model)  # culprit
            if control:
                torch.cuda.empty_cache()
        time.sleep(0.015)


if __name__ == "__main__":
    main("control" in sys.argv)

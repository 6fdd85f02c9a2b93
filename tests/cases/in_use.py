"""Jobs that keep what they need: averages, masks, and containers that fill up. None leaks.

usage: in_use.py NAME
"""

from __future__ import annotations

import copy
import sys
import time
from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import prune
from torch.optim.swa_utils import AveragedModel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH = 1024
FROM_STEP = 60


def make(layers: int = 3) -> tuple[Any, Any]:
    torch.manual_seed(1)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(layers))).to(DEVICE)
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def step(model: Any, optimizer: Any) -> None:
    model(torch.randn(16, WIDTH, device=DEVICE)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.015)


def average() -> None:
    """A moving average of the weights, which begins late and is written in each step."""
    model, optimizer = make()
    for _ in range(FROM_STEP):
        step(model, optimizer)
    shadow = copy.deepcopy(model)
    for _ in range(240):
        step(model, optimizer)
        with torch.no_grad():
            for mean, weight in zip(shadow.parameters(), model.parameters(), strict=True):
                mean.lerp_(weight, 0.01)


def seldom_average() -> None:
    """PyTorch's average, updated once in an epoch of 50 steps."""
    model, optimizer = make()
    for _ in range(FROM_STEP):
        step(model, optimizer)
    shadow = AveragedModel(model)
    for number in range(240):
        step(model, optimizer)
        if number % 50 == 49:
            shadow.update_parameters(model)


def pruned() -> None:
    """All layers are pruned at once, and trained on."""
    model, optimizer = make()
    for number in range(300):
        if number == FROM_STEP:
            for layer in model:
                prune.l1_unstructured(layer, "weight", amount=0.2)
        step(model, optimizer)


def pruned_by_part() -> None:
    """One layer more is pruned every 20 steps."""
    model, optimizer = make(8)
    for number in range(320):
        part, rest = divmod(number - FROM_STEP, 20)
        if rest == 0 and 0 <= part < len(model):
            prune.l1_unstructured(model[part], "weight", amount=0.2)
        step(model, optimizer)


class Ring:
    """The newest rows, as many as its capacity."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.rows, self.at = capacity, list[Tensor | None](), 0

    def push(self, row: Tensor) -> None:
        if len(self.rows) < self.capacity:
            self.rows.append(None)
        self.rows[self.at] = row
        self.at = (self.at + 1) % self.capacity


def ring() -> None:
    """A replay buffer that is a list, and fills up for 200 of 300 steps."""
    model, optimizer = make()
    buffer = Ring(200)
    for _ in range(300):
        step(model, optimizer)
        buffer.push(torch.randn(256, WIDTH, device=DEVICE))


def newest() -> None:
    """A dictionary from which the oldest are taken out again."""
    model, optimizer = make()
    seen: OrderedDict[int, Tensor] = OrderedDict()
    for number in range(300):
        step(model, optimizer)
        seen[number] = torch.randn(256, WIDTH, device=DEVICE)
        if len(seen) > 200:
            seen.popitem(last=False)


JOBS = {
    job.__name__: job for job in (average, seldom_average, pruned, pruned_by_part, ring, newest)
}

if __name__ == "__main__":
    JOBS[sys.argv[1]]()

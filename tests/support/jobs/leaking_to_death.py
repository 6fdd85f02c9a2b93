"""Keeps an output of every step in a meter, until the memory of its device is gone."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

WARM_UP_STEPS = 50


class Meter:
    """Remembers outputs that nobody reads."""

    def __init__(self) -> None:
        self.values: list[Tensor] = []


def main() -> None:
    meter = Meter()
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
    optimizer = torch.optim.Adam(model.parameters())
    step = 0
    while True:
        outputs = model(torch.randn(1024, 128))
        loss = outputs.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step > WARM_UP_STEPS:
            meter.values.append(outputs.detach())  # the leak
        time.sleep(0.1)


if __name__ == "__main__":
    main()

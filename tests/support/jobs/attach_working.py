"""A program that works and knows its results by heart: any bit that changes under it is told.

Usage: ``attach_working.py MODE UNTIL``, with MODE ``python``, ``malloc`` or ``torch``. It says
"ready", works until the file UNTIL exists, and prints one line of JSON. Lines that are put into it
count themselves in ``counted``, signals (SIGUSR1) in ``heard``.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from collections.abc import Callable

counted = 0
heard = 0


def hear(*_: object) -> None:
    """Count a signal."""
    global heard
    heard += 1


def python_round() -> float:
    """Floats in a tight loop."""
    x, total = 0.5, 0.0
    for _ in range(4000):
        x = 3.9 * x * (1.0 - x)
        total += math.sin(x) * 1e-3
    return total


def malloc_round() -> int:
    """Small and large blocks, dicts and bytes, in and out."""
    kept: dict[int, bytes] = {}
    for number in range(600):
        kept[number % 97] = bytes(number * 37 % 5000) + str(number).encode() * (number % 7)
        kept.pop(number % 89, None)
    return sum(len(block) * (key + 1) for key, block in kept.items())


def torch_rounds() -> Callable[[], object]:
    """A training loop with worker threads; its losses repeat with the seed."""
    import torch

    torch.set_num_threads(2)
    data = torch.linspace(-1, 1, 64 * 96).reshape(64, 96)

    def one_round() -> list[float]:
        torch.manual_seed(7)
        model = torch.nn.Sequential(
            torch.nn.Linear(96, 128), torch.nn.GELU(), torch.nn.Linear(128, 96)
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        losses: list[float] = []
        for _ in range(4):
            loss = (model(data) - data.sin()).square().mean().exp()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    return one_round


def main(mode: str, until: str) -> None:
    """Work until told to end."""
    rounds: dict[str, Callable[[], object]] = {"python": python_round, "malloc": malloc_round}
    work = torch_rounds() if mode == "torch" else rounds[mode]
    expected = work()
    done = wrong = 0
    signal.signal(signal.SIGUSR1, hear)
    print("ready", flush=True)
    ended = False
    while not ended:
        ended = os.path.exists(until)
        done += 1
        wrong += work() != expected
    result = {"rounds": done, "wrong": wrong, "counted": counted, "heard": heard}
    print(json.dumps(result), flush=True)


main(*sys.argv[1:])

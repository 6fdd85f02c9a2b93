"""A job that runs out of memory, in the way that it is told to. For --emulate, with 64 MiB.

Trains some steps, waits for a file if one is named, takes more than there is, and ends as told.
"""

from __future__ import annotations

import argparse
import os
import signal
import time

import torch

CHUNK = 1 << 20


def train(steps: int) -> None:
    """Small steps, as before any trouble."""
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        model(torch.randn(8, 64)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.002)


def run_out() -> None:
    """Keep more than there is."""
    kept = []
    while True:
        kept.append(torch.zeros(CHUNK))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--wait-for", default="")
    parser.add_argument("--rank", default="")
    parser.add_argument("--end", choices=["raise", "go on", "kill"], default="raise")
    options = parser.parse_args()
    train(options.steps)
    print("trained", flush=True)
    while options.wait_for and not os.path.exists(options.wait_for):
        train(1)
    if options.rank and os.environ.get("RANK") != options.rank:
        train(1_000_000)
    try:
        run_out()
    except torch.cuda.OutOfMemoryError as error:
        if options.end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if options.end == "raise":
            raise
        print(type(error).__name__, torch.cuda.memory_allocated() < 64 << 20, flush=True)
    train(options.steps)


if __name__ == "__main__":
    main()

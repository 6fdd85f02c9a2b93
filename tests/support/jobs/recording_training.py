"""A training job that records its own history, and prints the beginning of it at the end."""

from __future__ import annotations

import signal
import time
from typing import Any

import torch

stopping = False


def stop(*_: object) -> None:
    global stopping
    stopping = True


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    memory: Any = torch.cuda.memory
    weight = torch.nn.Parameter(torch.ones(8, 8))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    memory._record_memory_history("all", stacks="python", max_entries=1_000_000)
    for _ in range(3):
        block = torch.empty(1 << 18)
        del block
    while not stopping:
        weight.grad = torch.ones(8, 8)
        optimizer.step()
        time.sleep(0.005)
    trace = memory._snapshot()["device_traces"][0]
    memory._record_memory_history(None)
    large = [entry["action"] for entry in trace if entry["size"] == 1 << 20]
    print(*(action for action in large if action.startswith(("alloc", "free"))))


if __name__ == "__main__":
    main()

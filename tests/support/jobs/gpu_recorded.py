"""A CUDA job that trains until SIGTERM, running out of memory or capturing graphs on the way."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import Any

import torch
from torch import nn

stopping = False


def stop(*_: object) -> None:
    global stopping
    stopping = True


class Net(nn.Module):  # type: ignore[misc]  # torch is not type-checked
    """Two layers, so that a backward pass has something to allocate."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(512, 2048)
        self.second = nn.Linear(2048, 512)

    def forward(self, x: Any) -> Any:
        hidden = torch.relu(self.first(x))
        return self.second(hidden)


def asks_for_too_much() -> None:
    """More than any device has: the error is the job's to handle."""
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        return
    raise AssertionError("expected no device to have a pebibyte")


def captures(model: Any) -> None:
    """A graph is captured and replayed, and gives what the model gives."""
    x = torch.randn(32, 512, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        with torch.cuda.graph(graph):
            captured = model(x)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.allclose(captured, model(x), atol=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--too-much", action="store_true")
    parser.add_argument("--captures", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    while not stopping:
        x = torch.randn(256, 512, device="cuda")
        loss = (model(x) - x).square().mean()
        loss.backward()
        if arguments.too_much:
            asks_for_too_much()
        if arguments.captures:
            captures(model)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        time.sleep(0.01)
    print("every step was right", file=sys.stderr)


if __name__ == "__main__":
    main()

"""A CUDA job that steps until SIGTERM, with something for a command to act on."""

from __future__ import annotations

import signal
import sys
import time

import torch
from torch import nn

stopping = False


def stop(*_: object) -> None:
    global stopping
    stopping = True


def cached(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Keep 512 MiB in the cache: 8 blocks of 64 MiB, allocated and freed."""
    del model
    blocks = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(8)]
    del blocks
    while not stopping:
        optimizer.step()
        time.sleep(0.02)


def capture(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Capture and replay a graph again and again, with an optimizer step inside each capture."""
    x = torch.randn(32, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x).sum().backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    while not stopping:
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            y = model(x)
            y.sum().backward()
            optimizer.step()
        before = [p.detach().clone() for p in model.parameters()]
        graph.replay()
        torch.cuda.synchronize()
        assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
        del graph, y
        optimizer.step()
    print("every replay was right")


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    {"cached": cached, "capture": capture}[sys.argv[1]](model, optimizer)


if __name__ == "__main__":
    main()

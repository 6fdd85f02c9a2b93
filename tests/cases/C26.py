"""C26: the same step captured as a CUDA graph again and again (pytorch/pytorch#83461)."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn

STEPS = 500


def capture(model: nn.Module, optimizer: Any, x: torch.Tensor) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):  # culprit
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    return graph


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    x = torch.randn(256, 1024, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    graph = capture(model, optimizer, x)
    for step in range(STEPS):
        if step % 50 == 49:
            del graph
            graph = capture(model, optimizer, x)
        graph.replay()
        vramscope_step()
        time.sleep(0.01)


def vramscope_step() -> None:
    """A replayed graph has no optimizer step that could be seen."""
    import vramscope

    vramscope.step()


if __name__ == "__main__":
    main()

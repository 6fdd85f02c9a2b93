"""A CUDA training job whose steps are replayed graphs; nothing is wrong with its memory.

It warms up, captures a graph for each of three lengths in a pool that they share, replays them by
turns, evaluates outside of graphs now and then, and captures all of them again half way.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import vramscope

LENGTHS = (32, 64, 128)
WIDTH = 256


@dataclass
class Captured:
    """One step as a graph, with the memory that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    batch: Tensor
    loss: Tensor


def train(model: nn.Module, optimizer: Any, batch: Tensor) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def capture(model: nn.Module, optimizer: Any) -> list[Captured]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for length in LENGTHS:
            for _ in range(3):
                train(model, optimizer, torch.randn(16, length, WIDTH, device="cuda"))
    torch.cuda.current_stream().wait_stream(side)
    captured: list[Captured] = []
    pool = torch.cuda.graph_pool_handle()
    for length in LENGTHS:
        batch = torch.randn(16, length, WIDTH, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            loss = train(model, optimizer, batch)
        captured.append(Captured(graph, batch, loss))
    return captured


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1200)
    steps = parser.parse_args().steps
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    captured = capture(model, optimizer)
    for step in range(steps):
        if step == steps // 2:
            captured = capture(model, optimizer)
        each = captured[step % len(captured)]
        each.batch.copy_(torch.randn_like(each.batch))
        each.graph.replay()
        vramscope.step()  # a replay calls no optimizer
        if step % 100 == 99:
            model.eval()
            with torch.no_grad():
                model(torch.randn(64, 64, WIDTH, device="cuda")).mean().item()
            model.train()
        time.sleep(0.01)
    print(f"loss {captured[0].loss.item():.4f}")


if __name__ == "__main__":
    main()

"""CUDA graphs: captured, replayed, captured anew, sharing a pool, and given up.

Needs a CUDA device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from benchmarks.trace_recorder import TraceRecorder

REPLAYS = 3
WIDTH = 512


def run(recorder: TraceRecorder) -> None:
    """Train by graphs of several batch sizes, one row after each capture and replay."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH)) for _ in range(6))
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    graphs: dict[int, Any] = {}
    for batch in (64, 1000, 3000):
        _warm_up(model, batch)
        shared = graphs[64][0].pool() if batch == 1000 else None
        graphs[batch] = _capture(model, batch, pool=shared)
        recorder.end_step()
        for known in graphs:
            _replay(*graphs[known], optimizer=optimizer, recorder=recorder)
    graphs[3000][0].reset()  # its pool may go with the next emptying of the cache
    recorder.end_step()
    del graphs[3000]
    _eager(model, recorder)
    graphs[2000] = _capture(model, 2000, pool=None, stream=torch.cuda.Stream())
    recorder.end_step()
    graphs[500] = _capture_branches(model, 500)
    recorder.end_step()
    for known in graphs:
        _replay(*graphs[known], optimizer=optimizer, recorder=recorder)
    graphs.clear()
    recorder.end_step()
    torch.cuda.empty_cache()
    _eager(model, recorder)


def _warm_up(model: nn.Module, batch: int) -> None:
    """Run on a side stream first, as the documentation asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            model(torch.randn(batch, WIDTH, device="cuda")).square().mean().backward()
    torch.cuda.current_stream().wait_stream(stream)
    model.zero_grad(set_to_none=True)


def _capture(model: nn.Module, batch: int, *, pool: Any, stream: Any = None) -> tuple[Any, Any]:
    """Graph of forward and backward, and the tensor that it reads; gradients live in its pool."""
    graph = torch.cuda.CUDAGraph()
    inputs = torch.randn(batch, WIDTH, device="cuda")
    model.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        model(inputs).square().mean().backward()
    return graph, inputs


def _capture_branches(model: nn.Module, batch: int) -> tuple[Any, Any]:
    """Graph with a branch on a second stream, whose frees wait for the end of the capture."""
    graph = torch.cuda.CUDAGraph()
    inputs = torch.randn(batch, WIDTH, device="cuda")
    branch = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        hidden = model(inputs)
        branch.wait_stream(main)
        with torch.cuda.stream(branch):
            aside = hidden.square().mean(dim=0)
            hidden.record_stream(branch)
        del hidden
        again = model(inputs)
        main.wait_stream(branch)
        aside.record_stream(main)
        again.add_(aside)
        del aside
        again.mul_(2)
    return graph, inputs


def _replay(graph: Any, inputs: Any, *, optimizer: Any, recorder: TraceRecorder) -> None:
    for _ in range(REPLAYS):
        inputs.copy_(torch.randn_like(inputs))
        graph.replay()
        optimizer.step()
    recorder.end_step()


def _eager(model: nn.Module, recorder: TraceRecorder) -> None:
    """The same work without a graph."""
    for batch in (64, 1000, 3000):
        model(torch.randn(batch, WIDTH, device="cuda")).square().mean().backward()
        model.zero_grad(set_to_none=True)
        recorder.end_step()

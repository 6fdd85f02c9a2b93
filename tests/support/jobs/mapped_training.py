"""Trains until SIGTERM and writes down its own segments after each step, as PyTorch tells them.

Arguments: FILE DEVICE [EXTRA]. FILE gets one JSON object: segments by step, and the names of the
parameters. EXTRA on a CUDA device: ``streams`` keeps blocks of a second stream and frees some
that the first one still uses, ``graph`` keeps what a CUDA graph has allocated in a private pool.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

import torch

PAUSE_S = 0.02
KEPT_STEPS = 5000
stopping = False


def stop(*_: object) -> None:
    """End after this step."""
    global stopping
    stopping = True


def own_segments() -> list[Any]:
    """Address, size, stream and pool of each segment, and size and state of its blocks."""
    return [
        [
            each["address"],
            each["total_size"],
            each["stream"],
            list(each["segment_pool_id"]),
            [[block["size"], block["state"]] for block in each["blocks"]],
        ]
        for each in torch.cuda.memory_snapshot()
        if each["device"] == 0
    ]


def keep_blocks_of_a_stream(step: int) -> list[torch.Tensor]:
    """Two blocks of another stream; the default stream uses another one that is freed now."""
    with torch.cuda.stream(torch.cuda.Stream()):
        kept = [torch.ones(1 << 20, device="cuda"), torch.ones(3000 * step, device="cuda")]
        passed_on = torch.ones(1 << 21, device="cuda")
    passed_on.record_stream(torch.cuda.default_stream())
    return kept


def captured_graph() -> tuple[Any, torch.Tensor]:
    """A graph with its output, in a private pool."""
    static = torch.ones(512, 512, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        output = static * 2 + torch.ones(512, 512, device="cuda")
    return graph, output


def main() -> None:
    path, device = sys.argv[1], sys.argv[2]
    extra = sys.argv[3] if len(sys.argv) > 3 else ""
    signal.signal(signal.SIGTERM, stop)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [torch.nn.Linear(512, 512) for _ in range(6)]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(512, 3000)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    segments = {}
    kept: list[Any] = []
    held: Any = captured_graph() if extra == "graph" else []
    step = 0
    while not stopping:
        step += 1
        optimizer.zero_grad()
        model(torch.randn(64 + step % 7 * 32, 512, device=device)).square().mean().backward()
        if step % 3 == 0:
            kept = [*kept[-5:], torch.zeros((step % 50) * 1000 + 1, device=device) + 1]
        if extra == "streams" and step % 5 == 0:
            held = [*held[-9:], keep_blocks_of_a_stream(step % 50)]
        optimizer.step()
        segments[step] = own_segments()
        segments.pop(step - KEPT_STEPS, None)
        time.sleep(PAUSE_S)
    parameters = [name for name, _ in model.named_parameters()]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"segments": segments, "parameters": parameters}, file)


if __name__ == "__main__":
    main()

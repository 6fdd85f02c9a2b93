"""C25: memory that another process has opened stays with its sender (THUDM/slime#1731)."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import multiprocessing, nn

STEPS = 600
MIB = 1 << 20


def consume(queue: Any, end: Any) -> None:
    held = []
    while not end.is_set():
        if not queue.empty():
            held.append((time.monotonic(), queue.get()))
        held = [(since, t) for since, t in held if time.monotonic() - since < 5]
        time.sleep(0.01)


def main() -> None:
    torch.manual_seed(0)
    context = multiprocessing.get_context("spawn")
    q, end = context.Queue(), context.Event()
    consumer = context.Process(target=consume, args=(q, end))
    consumer.start()
    model = nn.Linear(512, 512).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(STEPS):
        model(torch.randn(64, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 10:
            t = torch.randn(16 * MIB // 4, device="cuda")  # culprit
            q.put(t)  # culprit
            del t
        time.sleep(0.015)
    end.set()
    consumer.join()
    torch.cuda.ipc_collect()


if __name__ == "__main__":
    main()

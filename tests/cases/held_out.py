"""Jobs that were written when the judges were done, and that none of them was changed for.

But for ``bounded_window``: of growth that has just begun nobody is told any more.

usage: held_out.py NAME
"""

from __future__ import annotations

import gc
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

SEEN: dict[int, Tensor] = {}


def make() -> tuple[Any, Any]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(96, 384), nn.GELU(), nn.Linear(384, 96)).to(DEVICE)
    return model, torch.optim.AdamW(model.parameters())


def step(model: Any, optimizer: Any, batch: int = 48) -> Tensor:
    out: Tensor = model(torch.randn(batch, 96, device=DEVICE))
    out.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.012)
    return out.detach()


def global_dict() -> None:
    """A global dict, by the number of the step."""
    model, optimizer = make()
    for number in range(350):
        step(model, optimizer)
        SEEN[number] = torch.randn(192, 1024, device=DEVICE)  # culprit global_dict


def closure() -> None:
    """A list that only a closure knows."""
    model, optimizer = make()

    def recorder() -> Callable[[Tensor], None]:
        history: list[Tensor] = []

        def record(value: Tensor) -> None:
            history.append(value.repeat(8, 4))  # culprit closure

        return record

    record = recorder()
    for _ in range(350):
        record(step(model, optimizer, 256))


class Monitor:
    """Counts, and keeps what it counts."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"window": deque(), "count": 0}

    def watch(self, module: nn.Module, inputs: Any, output: Tensor) -> None:
        self.state["count"] += 1
        self.state["window"].append(output.detach().expand(40, -1, -1).clone())  # culprit hook


def hook() -> None:
    """A forward hook that keeps its outputs in a deque without a bound."""
    model, optimizer = make()
    monitor = Monitor()
    model[2].register_forward_hook(monitor.watch)
    for _ in range(350):
        step(model, optimizer)


def losses_of_epoch() -> None:
    """A list of losses with their graphs; some of their outputs never go through backward."""
    model, optimizer = make()
    losses = []
    for _ in range(350):
        step(model, optimizer)
        penalty = model(torch.randn(640, 96, device=DEVICE)).abs().mean()
        losses.append(penalty)  # culprit losses_of_epoch


class Node:
    """A tree whose children know their parents."""

    def __init__(self, payload: Tensor) -> None:
        self.payload = payload
        self.children = [Child(self)]


class Child:
    def __init__(self, parent: Node) -> None:
        self.parent = parent  # culprit tree


def tree() -> None:
    """A tree a step, in cycles; young collections come now and then."""
    model, optimizer = make()
    for number in range(500):
        step(model, optimizer)
        Node(torch.empty(3 << 18, device=DEVICE))
        if number % 45 == 44:
            gc.collect()


def bounded_window() -> None:
    """The last 40 outputs: no leak."""
    model, optimizer = make()
    window: deque[Tensor] = deque(maxlen=40)
    for _ in range(400):
        window.append(step(model, optimizer, 1024).repeat(4, 1))


def weak_cache() -> None:
    """A cache that keeps nothing alive: no leak."""
    model, optimizer = make()
    cache: Any = weakref.WeakValueDictionary()
    for number in range(400):
        value = step(model, optimizer, 1024).repeat(4, 1)
        cache[number] = value


def finder() -> None:
    """Batches that are doubled until one does not fit, then training."""
    model, optimizer = make()
    torch.cuda.set_per_process_memory_fraction((300 << 20) / torch.cuda.mem_get_info()[1])
    batch = 1024
    while True:
        try:
            step(model, optimizer, batch)
        except torch.cuda.OutOfMemoryError:
            break
        batch *= 2
    optimizer.zero_grad()
    for _ in range(300):
        step(model, optimizer, min(batch // 8, 2048))


def sorted_lengths() -> None:
    """Batches from the shortest to the longest, epoch after epoch: no leak."""
    model, optimizer = make()
    for number in range(420):
        step(model, optimizer, 64 + number % 140 * 16)


JOBS = {
    job.__name__: job
    for job in (
        *(global_dict, closure, hook, losses_of_epoch, tree),
        *(bounded_window, weak_cache, finder, sorted_lengths),
    )
}

if __name__ == "__main__":
    JOBS[sys.argv[1]]()

"""Jobs whose memory grows: to the end of a small device, until they stop, or up and down."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tests.cases.workloads import vision
from tests.cases.workloads.loop import DEVICE, learn, rand


@dataclass(frozen=True)
class Growing:
    """A job that grows.

    Args:
        job: does so many steps, if its memory lasts.
        capacity_mib: of the device that it is recorded on.
        steps: more than fit, where it is to run out of memory.
        ends: whether it runs out of memory.
    """

    job: Callable[[int], None]
    capacity_mib: int
    steps: int
    ends: bool = True


def network() -> tuple[nn.Module, Any]:
    model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128)).to(DEVICE)
    return model, torch.optim.Adam(model.parameters())


def even_leak(steps: int) -> None:
    """An output of each step is kept."""
    model, optimizer = network()
    kept: list[Tensor] = []
    for _ in range(steps):
        out = model(rand(1024, 128))
        learn(optimizer, out.square().mean())
        kept.append(out.detach())


def graph_leak(steps: int) -> None:
    """A sum of losses is carried on with its history."""
    model, optimizer = network()
    total: Any = 0.0
    for _ in range(steps):
        loss = model(rand(256, 128)).square().mean()
        learn(optimizer, loss)
        total = total + model(rand(128, 128)).square().mean()


def evaluation_leak(steps: int) -> None:
    """Predictions of every evaluation are kept."""
    model, optimizer = network()
    held_out = DataLoader(TensorDataset(torch.randn(4096, 128)), batch_size=512)
    kept: list[Tensor] = []
    for step in range(1, steps + 1):
        learn(optimizer, model(rand(256, 128)).square().mean())
        if step % 40 == 0:
            with torch.no_grad():
                kept += [model(x.to(DEVICE)) for (x,) in held_out for _ in range(4)]


def seldom_leak(steps: int) -> None:
    """A tensor is kept for a log every 25 steps."""
    model, optimizer = network()
    kept: list[Tensor] = []
    for step in range(1, steps + 1):
        out = model(rand(1024, 128))
        learn(optimizer, out.square().mean())
        if step % 25 == 0:
            kept.append(torch.cat([out.detach()] * 16))


def noisy_leak(steps: int) -> None:
    """Batches of any length, and a part of each is kept."""
    rng = random.Random(4)
    model, optimizer = network()
    kept: list[Tensor] = []
    for _ in range(steps):
        rows = min(8000, int(rng.lognormvariate(7.0, 0.7)))
        out = model(rand(rows, 128))
        learn(optimizer, out.square().mean())
        kept.append(out.detach()[: rows // 2].clone())


def quickening_leak(steps: int) -> None:
    """A second leak begins at step 200, twice as fast as the first."""
    model, optimizer = network()
    kept: list[Tensor] = []
    for step in range(steps):
        out = model(rand(1024, 128))
        learn(optimizer, out.square().mean())
        kept += [out.detach().clone() for _ in range(1 if step < 200 else 3)]


def longer_batches(steps: int) -> None:
    """Sequences get longer and longer, and nothing is kept."""
    scale = nn.Parameter(torch.ones(64, device=DEVICE))
    optimizer = torch.optim.Adam([scale])
    for step in range(steps):
        x = rand(1024 + 128 * step, 64) * scale
        for _ in range(6):
            x = x.sin()
        learn(optimizer, x.square().mean())


def stopped_leak(steps: int) -> None:
    """A list is filled for 300 steps and is full then."""
    model, optimizer = network()
    kept: list[Tensor] = []
    for _ in range(steps):
        out = model(rand(1024, 128))
        learn(optimizer, out.square().mean())
        if len(kept) < 300:
            kept.append(out.detach())


def filling_cache(steps: int) -> None:
    """A table for each length that was seen: new ones become rare."""
    rng = random.Random(5)
    model, optimizer = network()
    tables: dict[int, Tensor] = {}
    for _ in range(steps):
        length = rng.randrange(200)
        if length not in tables:
            tables[length] = rand(1024 + length, 256)
        learn(optimizer, model(tables[length][:256, :128]).square().mean())


class Node:
    """Refers to itself."""

    def __init__(self, payload: Tensor) -> None:
        self.payload = payload
        self.me = self


def cycles(steps: int) -> None:
    """Reference cycles that Python's collector frees every now and then."""
    model, optimizer = network()
    for _ in range(steps):
        out = model(rand(1024, 128))
        learn(optimizer, out.square().mean())
        node = Node(torch.empty(1 << 18, device=DEVICE).fill_(0))
        junk = [[[step]] for step in range(400)]  # lets the collector come by
        assert node.me is node
        assert junk


GROWING: Final[Mapping[str, Growing]] = {
    each.job.__name__: each
    for each in (
        Growing(even_leak, 384, 2000),
        Growing(graph_leak, 512, 2000),
        Growing(evaluation_leak, 384, 2000),
        Growing(seldom_leak, 384, 2000),
        Growing(noisy_leak, 512, 2000),
        Growing(quickening_leak, 512, 2000),
        Growing(longer_batches, 256, 2000),
        Growing(stopped_leak, 512, 700, ends=False),
        Growing(filling_cache, 512, 700, ends=False),
        Growing(cycles, 512, 700, ends=False),
        Growing(vision.autotuned_tight, 2048, 1000, ends=False),
    )
}
"""By name."""

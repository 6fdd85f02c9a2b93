"""Workloads with sequences and graphs: changing lengths, curricula, states that are carried on."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.checkpoint import checkpoint

from tests.cases.workloads.loop import DEVICE, learn, rand


class Block(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Attention and a feed-forward network."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.forward_network = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.forward_network(x)


def blocks(count: int) -> nn.ModuleList:
    return nn.ModuleList([Block() for _ in range(count)]).to(DEVICE)


def any_length(steps: int) -> None:
    """Texts of any length, padded to the longest of a batch."""
    rng = random.Random(0)
    model = blocks(2)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        lengths = [min(256, int(rng.lognormvariate(3.5, 0.6))) for _ in range(4)]
        x = pad_sequence([rand(length, 64) for length in lengths], batch_first=True)
        for block in model:
            x = block(x)
        learn(optimizer, x.square().mean())


def curriculum(steps: int) -> None:
    """Sequences that get longer on purpose, eight times."""
    model = blocks(2)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        x = rand(4, 32 * (1 + 8 * step // steps), 64)
        for block in model:
            x = block(x)
        learn(optimizer, x.square().mean())


def checkpointed(steps: int) -> None:
    """Activation checkpointing, gradients of two batches added up, clipping."""
    model = blocks(3)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        for _ in range(2):
            x = rand(4, 32, 64).requires_grad_()
            for block in model:
                x = checkpoint(block, x, use_reentrant=False)
            x.square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def recurrent(steps: int) -> None:
    """A recurrent network whose state is carried on and detached."""
    lstm = nn.LSTM(64, 128).to(DEVICE)
    optimizer = torch.optim.RMSprop(lstm.parameters())
    state = None
    for _ in range(steps):
        out, state = lstm(rand(20, 8, 64), state)
        learn(optimizer, out.square().mean())
        state = tuple(each.detach() for each in state)


def packed(steps: int) -> None:
    """Packed sequences, the longest first; no two batches are alike."""
    rng = random.Random(2)
    gru, head = nn.GRU(32, 64).to(DEVICE), nn.Linear(64, 8).to(DEVICE)
    optimizer = torch.optim.Adam([*gru.parameters(), *head.parameters()])
    for _ in range(steps):
        lengths = sorted((rng.randint(5, 60) for _ in range(6)), reverse=True)
        batch = pad_sequence([rand(length, 32) for length in lengths])
        _, last = gru(pack_padded_sequence(batch, lengths))
        learn(optimizer, head(last).square().mean())


def graphs(steps: int) -> None:
    """Graphs of any size, messages along their edges."""
    rng = random.Random(3)
    layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(3)]).to(DEVICE)
    optimizer = torch.optim.Adam(layers.parameters())
    for _ in range(steps):
        nodes = rng.randint(100, 800)
        edges = torch.randint(nodes, (2, nodes * rng.randint(3, 8)), device=DEVICE)
        x = rand(nodes, 64)
        for layer in layers:
            gathered = torch.zeros_like(x).index_add(0, edges[1], layer(x)[edges[0]])
            x = gathered.relu()
        learn(optimizer, x.square().mean())


def experts(steps: int) -> None:
    """A mixture of experts: how many tokens each gets changes at every step."""
    gate = nn.Linear(64, 8).to(DEVICE)
    network = nn.ModuleList([nn.Linear(64, 64) for _ in range(8)]).to(DEVICE)
    optimizer = torch.optim.AdamW([*gate.parameters(), *network.parameters()])
    for _ in range(steps):
        x = rand(512, 64)
        scores = gate(x).softmax(-1)
        chosen = scores.argmax(-1)
        y = torch.zeros_like(x)
        for number, expert in enumerate(network):
            mine = (chosen == number).nonzero().squeeze(1)
            y = y.index_add(0, mine, expert(x[mine]) * scores[mine, number : number + 1])
        learn(optimizer, y.square().mean())


def mixed_precision(steps: int) -> None:
    """Autocast, and the mean of the last hundred losses."""
    model = blocks(2)
    optimizer = torch.optim.AdamW(model.parameters())
    losses: list[Tensor] = []
    for step in range(steps):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            x = rand(4, 48, 64)
            for block in model:
                x = block(x)
            loss = x.float().square().mean()
        learn(optimizer, loss)
        losses.append(loss.detach())
        if step % 100 == 99:
            print(float(torch.stack(losses).mean()))
            losses.clear()


def growing_batch(steps: int) -> None:
    """A batch that is doubled three times, by plan."""
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        learn(optimizer, model(rand(16 << (4 * step // steps), 256)).square().mean())

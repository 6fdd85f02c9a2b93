"""Workloads that do more than one thing by turns: games, two networks, trials, other optimizers."""

from __future__ import annotations

import random
from collections import deque
from itertools import pairwise

import torch
from torch import Tensor, nn

from tests.cases.workloads.loop import DEVICE, learn, rand


def network(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to(DEVICE)


def replay_buffer(steps: int) -> None:
    """Q-learning; the buffer of the last transitions fills up for half of the run."""
    rng = random.Random(0)
    q, target = network(128, 256, 8), network(128, 256, 8)
    optimizer = torch.optim.Adam(q.parameters())
    buffer: deque[tuple[Tensor, int, Tensor]] = deque(maxlen=steps * 2)
    state = rand(4096)
    for step in range(steps):
        for _ in range(4):
            after = rand(4096)
            buffer.append((state, rng.randrange(8), after))
            state = after
        batch = [rng.choice(buffer) for _ in range(16)]
        now = torch.stack([each[0][:128] for each in batch])
        then = torch.stack([each[2][:128] for each in batch])
        with torch.no_grad():
            best = target(then).amax(-1)
        taken = torch.tensor([each[1] for each in batch], device=DEVICE)
        value = q(now).gather(1, taken[:, None]).squeeze(1)
        learn(optimizer, (value - best).square().mean())
        if step % 100 == 0:
            target.load_state_dict(q.state_dict())


def rollouts(steps: int) -> None:
    """Policy gradients: 16 moves are gathered, then learnt from four times."""
    policy = network(64, 128, 8)
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(steps // 4):
        with torch.no_grad():
            states = [rand(64, 64) for _ in range(16)]
            moves = [policy(state).argmax(-1) for state in states]
        for _ in range(4):
            logits = policy(torch.cat(states)).log_softmax(-1)
            learn(optimizer, -logits.gather(1, torch.cat(moves)[:, None]).mean())


def two_networks(steps: int) -> None:
    """A generator and a discriminator, by turns, five to one."""
    generator, discriminator = network(64, 256, 128), network(128, 256, 1)
    first = torch.optim.Adam(generator.parameters())
    second = torch.optim.Adam(discriminator.parameters())
    # A step of the run is one of the discriminator.
    for step in range(steps * 6 // 5):
        if step % 6 == 0:
            learn(first, -discriminator(generator(rand(256, 64))).mean())
            second.zero_grad()
        else:
            fake = generator(rand(32, 64)).detach()
            learn(second, discriminator(fake).mean() - discriminator(rand(32, 128)).mean())


def gradient_penalty(steps: int) -> None:
    """A penalty on the gradient: backward through a backward."""
    critic = network(128, 256, 1)
    optimizer = torch.optim.Adam(critic.parameters())
    for _ in range(steps):
        x = rand(32, 128).requires_grad_()
        (slope,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        learn(optimizer, (slope.norm(dim=1) - 1).square().mean())


def folds(steps: int) -> None:
    """Ten folds: a new model each, the one before is gone."""
    for _ in range(10):
        model = network(256, 1024, 256)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(steps // 10):
            learn(optimizer, model(rand(8, 256)).square().mean())
        del model, optimizer


def trials(steps: int) -> None:
    """Eight trials with models of other widths each, the largest last but one."""
    for width in (128, 256, 512, 384, 192, 768, 1024, 256):
        model = network(128, width, 128)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(steps // 8):
            learn(optimizer, model(rand(16, 128)).square().mean())


def second_order(steps: int) -> None:
    """L-BFGS: its history of directions fills up."""
    model = network(64, 128, 64)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2, history_size=40)
    x = rand(64, 64)
    for _ in range(steps):

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = (model(x) - x).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)


def another_optimizer(steps: int) -> None:
    """Adam for the first half, then momentum."""
    model = network(128, 512, 128)
    optimizer: torch.optim.Optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        if step == steps // 2:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        learn(optimizer, model(rand(16, 128)).square().mean())


def warm_cache(steps: int) -> None:
    """Features of a frozen network are kept for each of 200 images: all are in the first epoch."""
    frozen, head = network(64, 256, 512), network(512, 64)
    optimizer = torch.optim.Adam(head.parameters())
    features: dict[int, Tensor] = {}
    for step in range(steps):
        index = step % 200
        if index not in features:
            with torch.no_grad():
                features[index] = frozen(rand(16, 64))
        learn(optimizer, head(features[index]).square().mean())

"""Workloads with images: fixed and changing sizes, objects, evaluation, growing models."""

from __future__ import annotations

import contextlib
import copy
import io
import random
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

from tests.cases.workloads.loop import DEVICE, learn, rand

MIB = 1 << 20


def convolutions(*channels: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(channels):
        layers += [nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()).to(DEVICE)


def classifier(steps: int) -> None:
    """A convolutional network, momentum, a schedule, evaluation in every epoch."""
    body, head = convolutions(3, 16, 32, 64), nn.Linear(64, 100).to(DEVICE)
    parameters = [*body.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    held_out = DataLoader(TensorDataset(torch.randn(256, 3, 32, 32)), batch_size=64)
    for step in range(1, steps + 1):
        learn(optimizer, head(body(rand(16, 3, 32, 32))).square().mean())
        schedule.step()
        if step % 125 == 0:
            body.eval()
            with torch.no_grad():
                right = [head(body(x.to(DEVICE))).argmax(-1).float().mean() for (x,) in held_out]
            body.train()
            print(float(torch.stack(right).mean()))


def multi_scale(steps: int) -> None:
    """Another image size every ten steps, as detectors train."""
    rng = random.Random(0)
    body = convolutions(3, 16, 32)
    optimizer = torch.optim.AdamW(body.parameters())
    size = 32
    for step in range(steps):
        if step % 10 == 0:
            size = rng.choice([32, 40, 48, 56, 64, 72, 80])
        learn(optimizer, body(rand(4, 3, size, size)).square().mean())


def objects(steps: int) -> None:
    """A number of objects that changes by image, with a long tail."""
    rng = random.Random(1)
    body = convolutions(3, 16, 32)
    optimizer = torch.optim.AdamW(body.parameters())
    anchors = torch.rand(1000, 4, device=DEVICE)
    for _ in range(steps):
        boxes = torch.rand(min(200, int(rng.paretovariate(1.3) * 4)), 4, device=DEVICE)
        pair = (boxes[:, None] - anchors[None]).abs().sum(-1)
        learn(optimizer, body(rand(4, 3, 32, 32)).square().mean() + pair.topk(2).values.mean())


def large_evaluation(steps: int) -> None:
    """An evaluation with batches eight times as large, every hundred steps."""
    body = convolutions(3, 16, 32)
    optimizer = torch.optim.Adam(body.parameters())
    for step in range(1, steps + 1):
        learn(optimizer, body(rand(8, 3, 32, 32)).square().mean())
        if step % 100 == 0:
            with torch.inference_mode():
                print([float(body(rand(64, 3, 32, 32)).mean()) for _ in range(4)])


def averaged(steps: int) -> None:
    """A moving average of the weights from the second half on, saved now and then."""
    body = convolutions(3, 16, 32)
    optimizer = torch.optim.Adam(body.parameters())
    average = None
    for step in range(1, steps + 1):
        learn(optimizer, body(rand(8, 3, 32, 32)).square().mean())
        if step == steps // 2:
            average = AveragedModel(body)
        if average is not None and step % 5 == 0:
            average.update_parameters(body)
        if step % 200 == 0:
            state = {name: tensor.clone() for name, tensor in body.state_dict().items()}
            torch.save({"model": state, "optimizer": optimizer.state_dict()}, io.BytesIO())
            del state


def diffusion(steps: int) -> None:
    """Noise, a small network, an exponential average of its weights at every step."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.SiLU(), nn.Conv2d(32, 3, 3, padding=1)
    ).to(DEVICE)
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        image, noise = rand(8, 3, 16, 16), rand(8, 3, 16, 16)
        learn(optimizer, (model(image + noise) - noise).square().mean())
        with torch.no_grad():
            for old, new in zip(average.parameters(), model.parameters(), strict=True):
                old.lerp_(new, 0.01)


def progressive(steps: int) -> None:
    """A network that gets another block, and larger images, four times."""
    blocks = nn.ModuleList([nn.Conv2d(16, 16, 3, padding=1)]).to(DEVICE)
    enter = nn.Conv2d(3, 16, 1).to(DEVICE)
    optimizer = torch.optim.Adam([*enter.parameters(), *blocks.parameters()])
    size = 8
    for step in range(steps):
        if step and step % (steps // 5) == 0:
            block = nn.Conv2d(16, 16, 3, padding=1).to(DEVICE)
            blocks.append(block)
            optimizer.add_param_group({"params": list(block.parameters())})
            size += 8
        x = enter(rand(4, 3, size, size))
        for block in blocks:
            x = block(x).relu()
        learn(optimizer, x.square().mean())


def unfrozen(steps: int) -> None:
    """Layers of a pretrained network that are let go one after the other."""
    body = nn.Sequential(*(nn.Linear(256, 256) for _ in range(8))).to(DEVICE)
    for parameter in body.parameters():
        parameter.requires_grad_(False)
    head = nn.Linear(256, 10).to(DEVICE)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()])
    for step in range(steps):
        if step % (steps // 8) == 0:
            for parameter in body[-1 - step // (steps // 8) % 8].parameters():
                parameter.requires_grad_(True)
        learn(optimizer, head(body(rand(16, 256))).square().mean())


def memory_bank(steps: int) -> None:
    """Contrast against a queue of fixed length, and a key network that follows."""
    query, key = nn.Linear(128, 64).to(DEVICE), nn.Linear(128, 64).to(DEVICE)
    optimizer = torch.optim.SGD(query.parameters(), lr=0.01, momentum=0.9)
    queue = rand(4096, 64)
    for step in range(steps):
        x = rand(32, 128)
        with torch.no_grad():
            keys = key(x)
        logits = torch.cat([(query(x) * keys).sum(1, keepdim=True), query(x) @ queue.T], 1)
        target = torch.zeros(32, dtype=torch.long, device=DEVICE)
        learn(optimizer, nn.functional.cross_entropy(logits, target))
        at = step * 32 % 4096
        queue[at : at + 32] = keys


def compiled(steps: int) -> None:
    """torch.compile, where there is a compiler; eager else."""
    model: Any = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128)).to(DEVICE)
    run = torch.compile(model, backend="eager")
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        x: Tensor = rand(24 if step % 40 == 39 else 32, 128)
        learn(optimizer, run(x).square().mean())


def autotuned(steps: int) -> None:
    """Kernels are chosen by trial for each new image size: large workspaces, for one step.

    So do cuDNN's benchmark mode, which empties the cache afterwards, and Triton's autotuner, whose
    buffer of 256 MB flushes the cache of the device.
    """
    _tuned(steps, range(8 * MIB, 384 * MIB))


def autotuned_tight(steps: int) -> None:
    """Kernels are chosen by trial, and left out where their workspaces do not fit."""
    _tuned(steps, range(8 * MIB, 3072 * MIB))


def _tuned(steps: int, workspace_bytes: range) -> None:
    rng = random.Random(6)
    body = convolutions(3, 16, 32)
    optimizer = torch.optim.AdamW(body.parameters())
    tried: set[int] = set()
    size = 32
    for step in range(steps):
        if step % 12 == 0:
            size = rng.choice(range(32, 96, 2))
        if size not in tried:
            tried.add(size)
            for _ in range(12):
                with contextlib.suppress(torch.cuda.OutOfMemoryError):
                    torch.empty(rng.choice(workspace_bytes), dtype=torch.uint8, device=DEVICE)
            torch.empty(256_000_000, dtype=torch.uint8, device=DEVICE)
            torch.cuda.empty_cache()
        learn(optimizer, body(rand(4, 3, size, size)).square().mean())

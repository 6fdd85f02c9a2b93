"""A small transformer that learns a synthetic language, with the memory habits of real jobs.

Plain PyTorch: it does not know that it is watched. First it is ``healthy`` (every step alike).
Then it keeps some logits of every step for a log that nobody reads, ``leaking`` at one length of
sequences and ``varlen`` at changing ones, with a few features kept as well: the allocator ends up
with gaps that it can neither use nor return. When memory runs out it drops the log and begins
again.
"""

# pyright: basic
# A user's script: torch's own stubs leave much unknown, and no user would annotate around that.

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

GIB = 1 << 30
LOG_EVERY_STEPS = 20
SENTENCES = 4096
KEPT_FEATURES = 12
LOGGED_POSITIONS = 32
HEALTHY_STEPS = 30
LEAKING_STEPS = 240
VARLEN_STEPS = 40
# Some machines would be out of memory before anybody has looked; and the browser wants a core, too.
LEAST_STEP_S = 0.25


@dataclass(frozen=True)
class Size:
    """How large model and batch are."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    batch: int
    length: int

    @classmethod
    def for_device(cls, device: torch.device) -> Size:
        """A size that takes a fraction of a second a step and leaves memory free."""
        if device.type != "cuda":
            return cls(4, 128, 4, 8192, batch=3, length=256)
        total_gib = torch.cuda.get_device_properties(device).total_memory // GIB
        batch = max(1, min(16, total_gib // 2))
        return cls(8, 1024, 16, 32_000, batch=batch, length=512)


def build_model(size: Size) -> nn.ModuleDict:
    """Token and position embeddings, a pre-norm causal transformer, and a head."""
    layer = nn.TransformerEncoderLayer(
        size.width, size.heads, 4 * size.width, activation="gelu", batch_first=True, norm_first=True
    )
    return nn.ModuleDict(
        {
            "tokens": nn.Embedding(size.vocabulary, size.width),
            "positions": nn.Embedding(2 * size.length, size.width),
            "blocks": nn.TransformerEncoder(layer, size.layers, enable_nested_tensor=False),
            "head": nn.Linear(size.width, size.vocabulary, bias=False),
        }
    )


def forward(model: nn.ModuleDict, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Features and logits of every position."""
    length = inputs.shape[1]
    positions = torch.arange(length, device=inputs.device)
    mask = nn.Transformer.generate_square_subsequent_mask(length, device=inputs.device)
    embedded = model["tokens"](inputs) + model["positions"](positions)
    features: Tensor = model["blocks"](embedded, mask=mask, is_causal=True)
    logits: Tensor = model["head"](features)
    return features, logits


class Sentences(Dataset[Tensor]):  # type: ignore[misc]  # torch is untyped here
    """Sequences in which each token follows from the one before, with some noise."""

    def __init__(self, size: Size, count: int = SENTENCES) -> None:
        self.size = size
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Tensor:
        generator = torch.Generator().manual_seed(index)
        vocabulary = self.size.vocabulary
        first = torch.randint(vocabulary, (), generator=generator)
        stride = torch.randint(1, 8, (), generator=generator)
        tokens = (first + stride * torch.arange(2 * self.size.length)) % vocabulary
        noise = torch.rand(tokens.shape, generator=generator) < 0.02
        others = torch.randint(vocabulary, tokens.shape, generator=generator)
        return torch.where(noise, others, tokens)


def batches(size: Size) -> Iterator[Tensor]:
    """Shuffled batches of the longest sequences, one epoch after the other."""
    loader = DataLoader(Sentences(size), batch_size=size.batch, shuffle=True)
    return itertools.chain.from_iterable(itertools.repeat(loader))


def phases() -> Iterator[str]:
    """Name of the phase of every step, without end."""
    yield from itertools.repeat("healthy", HEALTHY_STEPS)
    while True:
        yield from itertools.repeat("leaking", LEAKING_STEPS)
        yield from itertools.repeat("varlen", VARLEN_STEPS)


class Habits:
    """What the job keeps from one step to the next: nothing, too much, or odd pieces."""

    def __init__(self) -> None:
        self.phase = ""
        self.logged: list[Tensor] = []
        self.features: deque[Tensor] = deque(maxlen=KEPT_FEATURES)

    def enter(self, phase: str) -> None:
        """Let go of what belongs to another phase; of the log only where all begins."""
        if phase != self.phase:
            self.phase = phase
            self.features.clear()
        if phase == "healthy":
            self.logged.clear()

    def length(self, size: Size, generator: torch.Generator) -> int:
        """Sequence length of the next batch."""
        if self.phase != "varlen":
            return size.length
        return int(torch.randint(size.length // 4, 5 * size.length // 4, (), generator=generator))


def train_step(
    model: nn.ModuleDict, optimizer: torch.optim.Optimizer, batch: Tensor, habits: Habits
) -> Tensor:
    """One optimizer step, and what the job keeps of it; the loss."""
    features, logits = forward(model, batch[:, :-1])
    if habits.phase != "healthy":
        habits.logged.append(logits[0, :LOGGED_POSITIONS].detach().clone())
    if habits.phase == "varlen":
        # As a replay buffer would, and for the same gaps in the memory.
        habits.features.append(features.detach().clone())
    loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def train(steps: int | None) -> None:
    """Train for ``steps`` optimizer steps, or until interrupted."""
    # Half of the cores: the server and the browser of the demo want some too.
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size = Size.for_device(device)
    model = build_model(size).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    habits = Habits()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"training {parameters:,} parameters on {device}", flush=True)

    names = phases()
    began_s = time.monotonic()
    for step, sequences in enumerate(batches(size), 1):
        habits.enter(next(names))
        batch = sequences[:, : habits.length(size, generator) + 1].to(device)
        try:
            loss = train_step(model, optimizer, batch, habits).item()
        except torch.OutOfMemoryError:
            print(f"step {step:6d}  out of memory; once more from the beginning", flush=True)
            names = phases()
            continue
        if step % LOG_EVERY_STEPS == 0 or step == steps:
            print(f"step {step:6d}  {habits.phase:8}  loss {loss:.4f}", flush=True)
        if step == steps:
            return
        time.sleep(max(0.0, began_s + LEAST_STEP_S - time.monotonic()))
        began_s = time.monotonic()


def main(arguments: list[str] | None = None) -> int:
    """Command line of the demo job."""
    parser = argparse.ArgumentParser(description="Train a small transformer on synthetic text.")
    parser.add_argument("--steps", type=int, default=None, help="optimizer steps; default: no end")
    options = parser.parse_args(arguments)
    if options.steps is not None and options.steps < 1:
        parser.error(f"--steps: expected 1 or more, got {options.steps}")
    try:
        train(options.steps)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

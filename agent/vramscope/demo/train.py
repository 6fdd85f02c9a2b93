"""A small transformer that learns a synthetic language, with the memory habits of real jobs.

Plain PyTorch: it does not know that it is watched. It goes round three phases for as long as it is
left to: ``healthy`` (every step alike), ``leaking`` (every step keeps some logits for a log that
nobody reads, until the end of the phase) and ``varlen`` (sequences of changing length, with a
few of their features kept: the allocator ends up with gaps that it can neither use nor return).
"""

# pyright: basic
# A user's script: torch's own stubs leave much unknown, and no user would annotate around that.

from __future__ import annotations

import argparse
import os
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

GIB = 1 << 30
LOG_EVERY_STEPS = 20
KEPT_FEATURES = 12
LOGGED_POSITIONS = 64
# The leak lasts longest: whoever comes by after half a minute should find it open, and explained.
PHASES = (("healthy", 40), ("leaking", 300), ("varlen", 60))


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


def sample_batch(size: Size, length: int, generator: torch.Generator) -> Tensor:
    """Sequences in which each token follows from the one before, with some noise."""
    first = torch.randint(size.vocabulary, (size.batch, 1), generator=generator)
    stride = torch.randint(1, 8, (size.batch, 1), generator=generator)
    tokens = (first + stride * torch.arange(length + 1)) % size.vocabulary
    noise = torch.rand(tokens.shape, generator=generator) < 0.02
    return torch.where(noise, torch.randint_like(tokens, size.vocabulary), tokens)


def phases() -> Iterator[str]:
    """Name of the phase of every step, without end."""
    while True:
        for name, steps in PHASES:
            for _ in range(steps):
                yield name


class Habits:
    """What the job keeps from one step to the next: nothing, too much, or odd pieces."""

    def __init__(self) -> None:
        self.phase = ""
        self.logged: list[Tensor] = []
        self.features: deque[Tensor] = deque(maxlen=KEPT_FEATURES)

    def enter(self, phase: str) -> None:
        """Let go of what the last phase kept."""
        if phase != self.phase:
            self.phase = phase
            self.logged.clear()
            self.features.clear()

    def length(self, size: Size, generator: torch.Generator) -> int:
        """Sequence length of the next batch."""
        if self.phase != "varlen":
            return size.length
        return int(torch.randint(size.length // 4, 2 * size.length, (), generator=generator))


def train_step(
    model: nn.ModuleDict, optimizer: torch.optim.Optimizer, batch: Tensor, habits: Habits
) -> Tensor:
    """One optimizer step, and what the job keeps of it; the loss."""
    features, logits = forward(model, batch[:, :-1])
    if habits.phase == "leaking":
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

    for step, phase in enumerate(phases(), start=1):
        habits.enter(phase)
        batch = sample_batch(size, habits.length(size, generator), generator).to(device)
        loss = train_step(model, optimizer, batch, habits)
        if step % LOG_EVERY_STEPS == 0 or step == steps:
            print(f"step {step:6d}  {phase:8}  loss {loss.item():.4f}", flush=True)
        if step == steps:
            return


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

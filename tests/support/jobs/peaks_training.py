"""Training that looks at its own peaks: as users do, at random places, or to know the truth.

On a CUDA device, or on an emulated one. Everything is seeded, and what it does to its memory does
not depend on how it looks: runs that look in different ways are twins. Writes one JSON object.

--look resets and reads the peaks at random places, as logging code does. --measure steps, or
parts, resets at each border by itself: the truth to compare with.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import torch
from torch import nn

COUNTERS = ("allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes")


class Looks:
    """What a user sees who resets and reads the peaks here and there."""

    def __init__(self, seed: int, device: int) -> None:
        self._random = random.Random(seed)
        self._device = device
        self.seen: list[Any] = []

    def at(self, place: str) -> None:
        choice = self._random.random()
        if choice < 0.1:
            torch.cuda.reset_peak_memory_stats(self._device)
        elif choice < 0.13:
            torch.cuda.reset_accumulated_memory_stats(self._device)
        if self._random.random() < 0.3:
            own = [
                torch.cuda.max_memory_allocated(self._device),
                torch.cuda.max_memory_reserved(self._device),
            ]
            stats = dict(torch.cuda.memory_stats(self._device))
            accelerator: Any = getattr(torch, "accelerator", None)
            if hasattr(accelerator, "max_memory_allocated") and torch.cuda.is_available():
                own.append(accelerator.max_memory_allocated(self._device))
            self.seen.append([place, own, stats])


class Borders:
    """The peaks between borders, by resetting at each."""

    def __init__(self, device: int) -> None:
        self._device = device
        self.parts: dict[str, list[int]] = {}

    def cross(self, part: str) -> None:
        """What has been until here was this part."""
        stats = torch.cuda.memory_stats(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)
        peaks = [stats[f"{name}.all.peak"] for name in COUNTERS]
        before = self.parts.get(part, peaks)
        self.parts[part] = list(map(max, before, peaks))

    def take(self) -> dict[str, list[int]]:
        parts, self.parts = self.parts, {}
        return parts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--look", type=int, default=0, help="seed; 0: not at all")
    parser.add_argument("--measure", choices=("steps", "parts"))
    arguments = parser.parse_args()

    torch.manual_seed(0)
    rng = random.Random(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    width = arguments.width
    layers = [each for _ in range(4) for each in (nn.Linear(width, width), nn.GELU())]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    looks = Looks(arguments.look, 0) if arguments.look else None
    borders = Borders(0)
    truth: list[Any] = []

    def look(place: str) -> None:
        if looks is not None:
            looks.at(place)

    def cross(part: str) -> None:
        if arguments.measure == "parts":
            borders.cross(part)

    def before_step(*_: Any) -> None:
        cross("outside")

    def after_step(*_: Any) -> None:
        if arguments.measure is not None:
            borders.cross("optimizer" if arguments.measure == "parts" else "step")
            truth.append(borders.take())

    optimizer.register_step_pre_hook(before_step)
    optimizer.register_step_post_hook(after_step)
    loss = torch.zeros(())
    for _step in range(arguments.steps):
        for _ in range(rng.choice((1, 1, 2, 3))):
            batch = torch.randn(rng.randrange(16, 512), width, device=device)
            look("batch")
            hidden = model(batch)
            hidden.register_hook(lambda gradient: look("backward"))
            loss = hidden.square().mean()
            look("forward")
            cross("forward")
            loss.backward()
            cross("backward")
        if rng.random() < 0.3:
            torch.randn(rng.randrange(1, 4096), width, device=device)  # between both
        look("clip")
        optimizer.step()
        look("step")
        if rng.random() < 0.7:
            optimizer.zero_grad(set_to_none=True)
        if rng.random() < 0.02:
            torch.cuda.empty_cache()
    found = {
        "loss": loss.double().item().hex(),
        "seen": [] if looks is None else looks.seen,
        "truth": truth,
    }
    if arguments.log:
        arguments.log.write_text(json.dumps(found))
    print("final loss", found["loss"])


if __name__ == "__main__":
    main()

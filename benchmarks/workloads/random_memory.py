"""Tensors of random sizes, for workloads that only hold memory."""

from __future__ import annotations

import random

import torch

MIB = 1 << 20


def random_memory(
    rng: random.Random, device: str = "cuda", most_bytes: int = 24 * MIB
) -> torch.Tensor:
    """Bytes of a random size: as often for the small pool as for the large one."""
    size_bytes = rng.choice((rng.randrange(1, MIB), rng.randrange(MIB, most_bytes)))
    return torch.empty(size_bytes, dtype=torch.uint8, device=device)

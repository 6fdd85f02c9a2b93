"""What the workloads have in common."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def learn(optimizer: Any, loss: Tensor) -> float:
    """Backward, step, and gradients away."""
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def rand(*sizes: int) -> Tensor:
    """Random numbers on the device."""
    return torch.randn(*sizes, device=DEVICE)

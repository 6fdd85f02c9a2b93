"""The smallest job that is watched from inside: two lines of vramscope in a training loop.

    python examples/train_minimal.py

Attaching finds the local server, or starts one, and prints where the page is. Without a GPU, start
it with VRAMSCOPE_EMULATE=1.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

import vramscope


def main(steps: int) -> None:
    """Fit a small network to a sine."""
    vramscope.attach(run="minimal")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(1, 512), nn.Tanh(), nn.Linear(512, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, steps + 1):
        inputs = torch.rand(4096, 1, device=device) * 6
        loss = nn.functional.mse_loss(model(inputs), inputs.sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        vramscope.log(loss=loss.item())
        if step % 100 == 0:
            print(f"step {step}  loss {loss.item():.5f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)

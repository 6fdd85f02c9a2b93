"""C58: an interactive shell remembers the last traceback (ipython/ipython#11572)."""

from __future__ import annotations

import code
import contextlib
import io

FAILS = """
import time, torch
from torch import nn
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = nn.Linear(256, 256).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters())
def train(steps):
    for _ in range(steps):
        model(torch.randn(32, 256, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)
def cell():
    activations = torch.ones(200 << 18, device=DEVICE)
    return activations.reshape(7, 11)
train(60)
cell()
"""
TRAINS = "train(300)\n"


def main() -> None:
    shell = code.InteractiveInterpreter()
    for cell in (FAILS, TRAINS):
        with contextlib.redirect_stderr(io.StringIO()):
            shell.runcode(compile(cell, "<cell>", "exec"))


if __name__ == "__main__":
    main()

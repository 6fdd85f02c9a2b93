"""C01: a running loss that is added up without detaching (huggingface/transformers#6999).

A part of it never goes through backward, and keeps its saved tensors on the device.
"""

from __future__ import annotations

import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 350


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 512)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = torch.tensor(0.0, device=DEVICE)
    for _ in range(STEPS):
        feats = model(torch.randn(256, 64, device=DEVICE))
        y = torch.randn_like(feats)
        loss = (feats - y).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        aux = (feats.sigmoid() * y).mean()
        total = total + loss + 0 * aux  # culprit
        time.sleep(0.01)
    print(total.item())


if __name__ == "__main__":
    main()

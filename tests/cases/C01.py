"""C01: a running loss that is added up without detaching (huggingface/transformers#6999).

usage: C01.py a|b

a: what was added has been through backward, so only nodes of the graph pile up, on the host.
b: a part of it never goes through backward, and keeps its saved tensors on the device.
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = {"a": 500, "b": 300}


def main(variant: str) -> None:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(40)]
    model = nn.Sequential(*layers, nn.Linear(64, 512)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = torch.tensor(0.0, device=DEVICE)
    for _ in range(STEPS[variant]):
        x = torch.randn(256, 64, device=DEVICE)
        feats = model(x)
        loss = feats.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if variant == "a":
            total = total + loss  # culprit a
        else:
            y = torch.randn_like(feats)
            aux = (feats.sigmoid() * y).mean()
            total = total + loss + 0 * aux  # culprit b
        time.sleep(0.02 if variant == "a" else 0.005)


if __name__ == "__main__":
    main(sys.argv[1])

"""C01: a running loss that is added up without detaching (huggingface/transformers#6999).

The loss has been through backward, so only nodes of the graph pile up, on the host.
"""

from __future__ import annotations

import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 340


def main() -> None:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(160)]
    model = nn.Sequential(*layers, nn.Linear(16, 16)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = torch.tensor(0.0, device=DEVICE)
    for _ in range(STEPS):
        loss = model(torch.randn(16, 16, device=DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total = total + loss  # culprit
        time.sleep(0.01)
    print(total.item())


if __name__ == "__main__":
    main()

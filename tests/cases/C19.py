"""C19: evaluation without no_grad, its hidden state carried along (mravanelli/pytorch-kaldi#41)."""

from __future__ import annotations

import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 400


def main() -> None:
    torch.manual_seed(0)
    gru = nn.GRU(64, 128).to(DEVICE)
    optimizer = torch.optim.Adam(gru.parameters())
    crit = nn.MSELoss()
    for step in range(1, STEPS + 1):
        out, _ = gru(torch.randn(10, 16, 64, device=DEVICE))
        out.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            h = None
            for _ in range(40):
                xb = torch.randn(20, 64, 64, device=DEVICE)
                out, h = gru(xb, h)  # culprit
                loss = crit(out, torch.zeros_like(out)).item()
                time.sleep(0.03)
            print(f"dev loss {loss:.3f}")
            del h, out
        time.sleep(0.008)


if __name__ == "__main__":
    main()

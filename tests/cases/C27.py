"""C27: a logger that is given tensors keeps them on the host (wandb/wandb#354)."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 500


class Log:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def log(self, row: dict[str, Any]) -> None:
        self.rows.append(row)


def main() -> None:
    torch.manual_seed(0)
    log = Log()
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128)).to(DEVICE)
    on_host = nn.Linear(128, 1024)
    optimizer = torch.optim.Adam([*model.parameters(), *on_host.parameters()])
    for _ in range(STEPS):
        out = model(torch.randn(256, 128, device=DEVICE))
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss_on_host = on_host(out.detach().cpu()).sigmoid().square().mean()
        log.log({"loss": loss_on_host})  # culprit
        time.sleep(0.04)


if __name__ == "__main__":
    main()

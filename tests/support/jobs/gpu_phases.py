"""Trains on a GPU with compiled and captured parts, evaluates and saves: prints losses, exactly."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

WIDTH = 1024
BATCH = 64


def loader(batches: int, *, pin: bool) -> Any:
    return torch.utils.data.DataLoader(
        torch.randn(batches * BATCH, WIDTH), batch_size=BATCH, pin_memory=pin
    )


def main() -> None:
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    plain = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()).cuda()
    captured = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()).cuda()
    optimizer = torch.optim.AdamW([*plain.parameters(), *captured.parameters()])
    sample = torch.randn(BATCH, WIDTH, device="cuda", requires_grad=True)
    replayed: Any = torch.cuda.make_graphed_callables(captured, (sample,))
    compiled: Any = torch.compile(plain, backend="aot_eager")
    train_loader, eval_loader = loader(10, pin=True), loader(200, pin=False)
    for epoch in range(2):
        for batch in train_loader:
            inputs = batch.cuda(non_blocking=True)
            loss = (replayed(compiled(inputs)) - inputs).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print("loss", epoch, loss.item().hex())
        for batch in eval_loader:
            with torch.no_grad():
                plain(batch.cuda())
        torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            for number in range(8):
                state = {"model": plain.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(state, Path(folder) / f"{number}.pt")


if __name__ == "__main__":
    main()

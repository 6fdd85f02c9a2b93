"""C72: out of memory that arrives as an internal assert (pytorch/pytorch#112121)."""

from __future__ import annotations

import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20
CAP = 300 * MIB


def main() -> None:
    torch.manual_seed(0)
    torch.cuda.set_per_process_memory_fraction(CAP / torch.cuda.mem_get_info()[1])
    model = nn.Linear(512, 512).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(60):
        model(torch.randn(64, 512, device=DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)
    left = CAP - torch.cuda.memory_reserved() - 8 * MIB
    held = torch.empty(left // 4, device=DEVICE)
    time.sleep(0.3)
    # What PyTorch raises where its own report of the failure asks a driver that is not there.
    raise RuntimeError(  # culprit
        "NVML_SUCCESS == r INTERNAL ASSERT FAILED at "
        f'"../c10/cuda/CUDACachingAllocator.cpp":1131, please report a bug ({held.numel()})'
    )


if __name__ == "__main__":
    main()

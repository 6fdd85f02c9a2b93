"""C64: memory asked for past torch cannot come out of torch's cache (NovaSky-AI/SkyRL#716)."""

from __future__ import annotations

import ctypes
import time

import torch
from torch import nn

MIB = 1 << 20
LEFT = 2048 * MIB


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        model(torch.randn(64, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.02)


def main() -> None:
    torch.manual_seed(0)
    runtime = ctypes.CDLL(None)
    if not hasattr(runtime, "cudaMalloc"):
        runtime = ctypes.CDLL(f"libcudart.so.{(torch.version.cuda or '12').split('.')[0]}")
    model = nn.Linear(512, 512).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer, 50)
    free = torch.cuda.mem_get_info()[0]
    filler = torch.empty(free - LEFT, dtype=torch.uint8, device="cuda")  # culprit
    del filler
    train(model, optimizer, 600)
    place = ctypes.c_void_p()
    print("past torch:", runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(2 * LEFT)))
    runtime.cudaGetLastError()
    torch.cuda.empty_cache()
    print("after:", runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(2 * LEFT)))
    runtime.cudaFree(place)
    train(model, optimizer, 100)


if __name__ == "__main__":
    main()

"""A CUDA training job that nobody prepared: it trains until a file appears and logs each loss.

Under torchrun it is data parallel over NCCL, one device a rank. Everything is seeded, so that the
losses of two runs have the same bits as far as the shorter one goes.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

_STOP_EVERY = 20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="losses-RANK, pid-RANK and stop are in it")
    parser.add_argument("--width", type=int, default=256)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    rank = int(os.environ.get("RANK", "0"))
    is_parallel = "RANK" in os.environ
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if is_parallel:
        dist.init_process_group("nccl")

    torch.manual_seed(rank)
    torch.use_deterministic_algorithms(True)
    model: nn.Module = nn.Sequential(
        *(nn.Sequential(nn.Linear(arguments.width, arguments.width), nn.GELU()) for _ in range(4))
    ).cuda()
    if is_parallel:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    stop = torch.zeros((), device="cuda")
    with open(folder / f"losses-{rank}", "w", buffering=1) as log:
        (folder / f"pid-{rank}").write_text(str(os.getpid()))
        step = 0
        while not stop.item():
            batch = torch.randn(64, arguments.width, device="cuda")
            loss = (model(batch) - batch.roll(1, dims=1)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            log.write(f"{loss.item().hex()}\n")
            step += 1
            if step % _STOP_EVERY == 0:
                # All ranks stop after the same step: one of them may see the file first.
                stop.fill_(float((folder / "stop").exists()))
                if is_parallel:
                    dist.all_reduce(stop, dist.ReduceOp.MAX)
    if is_parallel:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

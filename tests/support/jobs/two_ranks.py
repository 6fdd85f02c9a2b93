"""Training on several ranks, with four loader workers each, that is made to act on while it runs.

two_ranks.py FOLDER HOW DEVICE [--steps N] [--samples N] [--pause-s S]
HOW is ddp or fsdp, DEVICE cuda (over NCCL) or cpu (over gloo). Without --steps it trains epoch
after epoch until the file "end" is in FOLDER. Memory comes and goes in pieces of any size, so that
there is always something cached that could go back to the device.

Each rank writes into FOLDER: losses-RANK, every loss to the last bit; acted-RANK, the steps at
whose ends memory went back to the device; epochs-RANK, of each epoch a line of JSON with its
samples, the sizes of its batches, and how many samples each step was of.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import time
from collections import deque
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import vramscope

WIDTH = 64
BATCH = 8
ACCUMULATION = 2
WORKERS = 4
LONGEST_WAIT_S = 60
"""A rank that waits for so long for another one has hung."""
LARGEST_MIB = 48


class Numbers(torch.utils.data.Dataset[Any]):  # type: ignore[misc]  # torch is untyped here
    """Samples that are their numbers."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:
        return index


class Ranks:
    """What one of the ranks does."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.rank = dist.get_rank()
        self.device = torch.device("cpu")
        if options.device == "cuda":
            self.device = torch.device("cuda", torch.cuda.current_device())
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(3)]
        self.model: Any = self._parallel(nn.Sequential(*layers).to(self.device))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.frequencies = torch.linspace(0.1, 1.0, WIDTH, device=self.device)
        self.losses: list[str] = []
        self.acted: list[int] = []
        self.step = 0
        # The same on all ranks and in each run; what comes last stays a while.
        self._sizes = random.Random(3)
        self._kept: deque[Any] = deque(maxlen=2)

    def run(self) -> None:
        """Train until the end, and write what was seen."""
        data = Numbers(self.options.samples)
        sampler = torch.utils.data.DistributedSampler(data, seed=5)
        loader: Any = torch.utils.data.DataLoader(
            data, batch_size=BATCH, sampler=sampler, num_workers=WORKERS
        )
        sizes = vramscope.batch_size(loader, accumulation=ACCUMULATION)
        epoch = 0
        while not self._is_over():
            sampler.set_epoch(epoch)
            self._epoch(loader, sizes)
            epoch += 1
        self._write("losses", "\n".join(self.losses))
        self._write("acted", json.dumps(self.acted))

    def _epoch(self, loader: Any, sizes: Any) -> None:
        seen: list[int] = []
        batches: list[int] = []
        steps: list[int] = []
        ends = 0
        for number, batch in enumerate(loader, 1):
            self._take(batch.to(self.device), sizes.accumulation)
            seen += batch.tolist()
            batches.append(len(batch))
            if number % sizes.accumulation == 0:
                self._end_step()
                steps.append(len(seen) - ends)
                ends = len(seen)
                if self.step == self.options.steps:
                    break
        with (self.options.folder / f"epochs-{self.rank}").open("a") as file:
            file.write(f"{json.dumps([seen, batches, steps])}\n")

    def _take(self, batch: Any, accumulation: int) -> None:
        self._kept.append(self._piece())
        samples = torch.sin(batch[:, None] * self.frequencies)
        loss = (self.model(samples) - samples.roll(1, 1)).square().mean()
        (loss / accumulation).backward()
        self.losses.append(float(loss.detach()).hex())

    def _end_step(self) -> None:
        self.step += 1
        before = given_back()
        self.optimizer.step()
        if given_back() > before:
            self.acted.append(self.step)
        self.optimizer.zero_grad()
        time.sleep(self.options.pause_s)

    def _piece(self) -> Any:
        size_bytes = self._sizes.randrange(1, LARGEST_MIB) << 20
        return torch.empty(size_bytes, dtype=torch.uint8, device=self.device)

    def _parallel(self, model: Any) -> Any:
        if self.options.how == "ddp":
            return nn.parallel.DistributedDataParallel(model)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(self.device.type, (dist.get_world_size(),))
        for layer in model:
            fully_shard(layer, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    def _is_over(self) -> bool:
        """All ranks end after the same epoch: one of them may see the file first."""
        if self.options.steps:
            return bool(self.step >= self.options.steps)
        is_over: Any = torch.zeros((), device=self.device)
        is_over.fill_(float((self.options.folder / "end").exists()))
        dist.all_reduce(is_over, dist.ReduceOp.MAX)
        is_over_anywhere: float = is_over.item()
        return is_over_anywhere > 0

    def _write(self, name: str, text: str) -> None:
        (self.options.folder / f"{name}-{self.rank}").write_text(text)


def given_back() -> int:
    """How often a segment went back to the device, as PyTorch counts."""
    return int(torch.cuda.memory_stats().get("num_device_free", 0))


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("how", choices=["ddp", "fsdp"])
    parser.add_argument("device", choices=["cuda", "cpu"])
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--samples", type=int, default=1536)
    parser.add_argument("--pause-s", type=float, default=0.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # else its sums are not the same each time
    torch.use_deterministic_algorithms(True)
    backend = "gloo"
    if options.device == "cuda":
        backend = "nccl"
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=LONGEST_WAIT_S))
    Ranks(options).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

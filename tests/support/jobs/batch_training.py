"""Trains one of the models of batch_models.py with batch sizes of the caller's choice.

    batch_training.py MODEL SIZExSTEPS[,SIZExSTEPS ...] [--device=cuda] [--scale=1] [--cap-mib=0]
                      [--pause-s=0]
    batch_training.py MODEL search:STEPS:START ...

Ends with a line of JSON. Running out of memory is no failure of the job: it says at which size.
--pause-s waits after each step, where those are over before anybody can follow.
With "search" it looks, from START on, for the largest size with which so many steps of a new
training fit.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[3]))
import vramscope
from tests.support.jobs.batch_models import Training, make

MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("plan")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--cap-mib", type=float, default=0)
    parser.add_argument("--pause-s", type=float, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")  # as much memory, and a GPU is through much sooner
    if asked.cap_mib:
        cuda: Any = torch.cuda
        total_bytes = cuda.get_device_properties(0).total_memory
        cuda.set_per_process_memory_fraction(asked.cap_mib * MIB / total_bytes)
    if asked.plan.startswith("search:"):
        steps, begin = (int(each) for each in asked.plan.split(":")[1:])
        found: object = {"largest": largest(asked.model, asked.device, asked.scale, steps, begin)}
    else:
        found = train(make(asked.model, asked.device, asked.scale), asked.plan, asked.pause_s)
    print(json.dumps(found), flush=True)


def train(training: Training, plan: str, pause_s: float = 0.0) -> dict[str, int | None]:
    """Go through the sizes; which one ran out of memory, if any did."""
    done = 0
    for part in plan.split(","):
        size, steps = (int(each) for each in part.split("x"))
        try:
            for _ in range(steps):
                vramscope.log(batch_size=size)
                training.step(size)
                done += 1
                time.sleep(pause_s)
        except torch.OutOfMemoryError:
            return {"steps": done, "failed_at": size}
    return {"steps": done, "failed_at": None}


def largest(model: str, device: str, scale: int, steps: int, begin: int) -> int:
    """By bisection, each size with a model of its own and an empty cache."""

    def fits(size: int) -> bool:
        found = train(make(model, device, scale), f"{size}x{steps}")
        gc.collect()
        torch.cuda.empty_cache()
        return found["failed_at"] is None

    low = begin
    while low and not fits(low):
        low = int(low / 1.1)
    high = max(int(low * 1.1), low + 1)
    while fits(high):
        low, high = high, max(int(high * 1.1), high + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


if __name__ == "__main__":
    main()

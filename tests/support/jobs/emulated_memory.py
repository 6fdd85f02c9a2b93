"""Training on the CPU that looks after a GPU's memory as jobs on GPUs do. For --emulate.

Records the allocator's history, runs out of memory once, goes on with a smaller batch, and writes
a snapshot. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("snapshot")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    observed: list[tuple[int, ...]] = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *facts: observed.append(facts))
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=100_000)
    torch.manual_seed(0)
    model = nn.Sequential(
        *(layer for _ in range(3) for layer in (nn.Linear(512, 512), nn.GELU())), nn.Linear(512, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters())

    def step(batch_size: int) -> None:
        loss = model(torch.randn(batch_size, 512)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    caught = ""
    for number in range(options.steps):
        batch_size = 50_000 if number == options.steps // 2 else 500 + 377 * number
        try:
            step(batch_size)
        except torch.cuda.OutOfMemoryError as error:
            caught = str(error)
        if caught:
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
    torch.cuda.memory._dump_snapshot(options.snapshot)
    print(
        json.dumps(
            {
                "caught": caught,
                "observed": observed,
                "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
                "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
                "ooms": torch.cuda.memory_stats()["num_ooms"],
                "retries": torch.cuda.memory_stats()["num_alloc_retries"],
                "free_bytes": torch.cuda.mem_get_info()[0],
            }
        )
    )


if __name__ == "__main__":
    main()

"""A loop with accelerate on several ranks that trains epoch after epoch, until a file is there.

    python resized_ranks.py FILE

Prints each epoch of a rank as JSON: its samples, and the sizes of its batches.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from accelerate import Accelerator

SAMPLES = 192


def main(end: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    accelerator = Accelerator(cpu=True)
    numbers: Any = torch.arange(float(SAMPLES))[:, None]
    data: Any = torch.utils.data.DataLoader(numbers, batch_size=8, shuffle=True, num_workers=2)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=1e-6)
    wrapped: Any
    wrapped, optimizer, data = accelerator.prepare(model, optimizer, data)
    is_over = torch.zeros(1)
    while not is_over.item():
        seen: list[int] = []
        sizes: list[int] = []
        for batch in data:
            with accelerator.accumulate(wrapped):
                accelerator.backward(wrapped(batch).mean())
                optimizer.step()
                optimizer.zero_grad()
            seen += batch[:, 0].int().tolist()
            sizes.append(len(batch))
            time.sleep(0.02)
        # In one piece: both ranks write to the same pipe.
        sys.stdout.write(f"epoch {json.dumps([int(os.environ['RANK']), seen, sizes])}\n")
        sys.stdout.flush()
        is_over[0] = end.exists()
        torch.distributed.all_reduce(is_over, torch.distributed.ReduceOp.MAX)
    accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Trains under a cap of its own on batches of a loader, and goes on where memory runs out.

runs_out_resized.py DEVICE CAP_MIB SAMPLE_KIB

Until SIGTERM. Prints as JSON, in the end, the sizes of the batches that memory ran out with, and of
the last ones that were trained on.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from typing import Any

import torch

import vramscope

SAMPLES, BATCH, WORKERS = 4096, 8, 2
LAST = 10

stopped = threading.Event()


def main(device: str, cap_mib: int, sample_kib: int) -> None:
    torch.set_num_threads(1)
    total_bytes = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(min(1.0, (cap_mib << 20) / total_bytes))
    weight = torch.nn.Parameter(torch.ones(sample_kib << 8, device=device))
    optimizer = torch.optim.SGD([weight], 1e-3)
    loader: Any = torch.utils.data.DataLoader(
        range(SAMPLES), batch_size=BATCH, shuffle=True, num_workers=WORKERS
    )
    sizes = vramscope.batch_size(loader, accumulation=1)
    trained: list[int] = []
    ran_out: list[int] = []
    while not stopped.is_set():
        for number, batch in enumerate(loader, 1):
            try:
                samples = batch.to(device)[:, None] * torch.ones_like(weight)
                (samples * weight).sin().mean().backward()
            except torch.OutOfMemoryError:
                ran_out.append(len(batch))
                optimizer.zero_grad()
                continue
            if number % sizes.accumulation == 0:
                optimizer.step()
                optimizer.zero_grad()
                trained.append(len(batch))
            if stopped.wait(0.01):
                break
    print(json.dumps({"ran_out": ran_out, "last": trained[-LAST:]}))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

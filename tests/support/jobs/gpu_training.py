"""A real training job on a CUDA device that keeps its own log of the allocator's counters.

Sequence lengths vary from step to step, so that the counters move; everything is seeded, so that
two runs end with the same bits. The log is the truth that the stored steps are compared with.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import torch
from torch import nn


def build_model(width: int, layers: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    random.seed(0)
    # Flash and memory-efficient attention add atomically in their backward: not the same bits.
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.use_deterministic_algorithms(True)
    model = build_model(arguments.width, arguments.layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rows: list[dict[str, int]] = []
    loss = torch.zeros(())
    for _ in range(arguments.steps):
        length = random.randrange(16, 256)
        batch = torch.randn(8, length, arguments.width, device="cuda")
        loss = (model(batch) - batch.roll(1, dims=1)).square().mean()
        loss.backward()
        optimizer.step()
        if arguments.log:
            rows.append(torch.cuda.memory_stats())
        optimizer.zero_grad(set_to_none=True)
    if arguments.log:
        arguments.log.write_text("\n".join(json.dumps(row) for row in rows))
    print("final loss", loss.double().item().hex())


if __name__ == "__main__":
    main()

"""What looking at the segments costs: one JSON line for each number of blocks."""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import torch

from vramscope.devices.caching_allocator import read_snapshot
from vramscope.memory_map.look import Looks
from vramscope.memory_map.pace import MapPace

ROUNDS = 30


def measured(blocks: int) -> dict[str, Any]:
    """Cost with about so many blocks, half of them free."""
    kept = [torch.empty(1 << 18, dtype=torch.uint8, device="cuda") for _ in range(blocks)]
    del kept[::2]
    looks, pace = Looks(), MapPace()
    snapshot_ms, look_ms = [], []
    found = 0
    for number in range(ROUNDS):
        start_s = time.perf_counter()
        segments = read_snapshot(torch._C)["segments"]
        read_s = time.perf_counter()
        look = looks.take(segments, time_ns=number, step=number, is_step_end=False)
        end_s = time.perf_counter()
        found = look.block_count
        snapshot_ms.append((read_s - start_s) * 1000)
        look_ms.append((end_s - read_s) * 1000)
        pace.account_look(int((end_s - start_s) * 1e9))
    kept.clear()
    torch.cuda.empty_cache()
    return {
        "asked": blocks,
        "blocks": found,
        "snapshot_ms": statistics.median(snapshot_ms),
        "look_ms": statistics.median(look_ms),
        "watched_interval_s": pace.interval_s(is_watched=True),
        "idle_interval_s": pace.interval_s(is_watched=False),
    }


def main() -> None:
    for blocks in map(int, sys.argv[1:]):
        print(json.dumps(measured(blocks)), flush=True)


if __name__ == "__main__":
    main()

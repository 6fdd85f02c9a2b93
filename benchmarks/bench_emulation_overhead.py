"""What emulation costs: one training step of a small transformer with and without it.

Also with a history of all events recorded, with Python stacks at allocations and frees. All are
measured in one process, in turns, so that a noisy machine disturbs them alike. Prints one line of
JSON. ``--width 16`` is the worst case: hardly any work in an operation.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from vramscope.emulation import start_emulation

ROUNDS = 7
RING = 100_000


def make_step(width: int, layers: int, length: int) -> Callable[[], None]:
    """A training step: forward, backward and AdamW of a transformer encoder."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(4, length, width)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step


def step_s(step: Callable[[], None], steps: int) -> float:
    """Mean time of a step."""
    start_s = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start_s) / steps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    step = make_step(options.width, options.layers, options.length)
    step_s(step, 3)

    plain: list[float] = []
    emulated: list[float] = []
    recorded: list[float] = []
    for _ in range(ROUNDS):
        plain.append(step_s(step, options.steps))
        emulation = start_emulation(8 << 30)
        step()
        emulated.append(step_s(step, options.steps))
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=RING)
        step()
        recorded.append(step_s(step, options.steps))
        emulation.stop()
    result: dict[str, object] = {"benchmark": "emulation_overhead", "width": options.width}
    for name, times in (("plain", plain), ("emulated", emulated), ("recorded", recorded)):
        result[f"{name}_ms"] = round(statistics.median(times) * 1e3, 3)
    for name, times in (("ratio", emulated), ("ratio_recorded", recorded)):
        ratios = [time_s / plain_s for plain_s, time_s in zip(plain, times, strict=True)]
        result[name] = round(statistics.median(ratios), 3)
    print(json.dumps(result))


if __name__ == "__main__":
    main()

"""What one turn of the sampling thread costs, beside a thread that only wakes up.

The device is a fake one, so this is the agent's own part: waking up, reading the host, building and
sending rows. The main thread trains a small network, computes in Python, or waits. CPU time is the
kernel's own count for each thread. Usage: ``bench_sampler.py [--seconds S]``.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from tests.agent.sampling.test_sampler import Rig
from tests.support.fake_torch import nested_stats
from vramscope.sampling.clock import Clock
from vramscope.sampling.sampler import THREAD_NAME

RATE_HZ = 10.0


def thread_cpu_ns(name: str) -> int:
    """CPU time of a thread of this process by name."""
    (thread,) = (each for each in threading.enumerate() if each.name == name)
    text = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text()
    return int(text.split()[0])


def wake_up_for_ever() -> None:
    """The empty turn: wait as the sampler does, and do nothing."""
    lock = threading.Lock()
    lock.acquire()
    while True:
        lock.acquire(timeout=1 / RATE_HZ)


def loads() -> dict[str, Callable[[], object]]:
    """What the main thread does meanwhile."""
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(64, 128)

    def train() -> None:
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return {
        "trains": train,
        "computes in Python": lambda: sum(range(20_000)),
        "waits": lambda: time.sleep(0.01),
    }


def run(load: Callable[[], object], seconds: float) -> None:
    """Keep the main thread at its work."""
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        load()


def main() -> None:
    """Measure under each load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    threading.Thread(target=wake_up_for_ever, name="empty", daemon=True).start()
    rig = Rig(Clock(), rate_hz=RATE_HZ, cost_budget=0.0)
    rig.device.stats = nested_stats((2, 11), reserved_bytes=1 << 30)
    rig.sampler.start()
    for name, load in loads().items():
        run(load, 2.0)
        before = {thread: thread_cpu_ns(thread) for thread in ("empty", THREAD_NAME)}
        run(load, seconds)
        spent = {thread: thread_cpu_ns(thread) - before[thread] for thread in before}
        for thread, spent_ns in spent.items():
            per_turn_us = spent_ns / 1e3 / (seconds * RATE_HZ)
            share = spent_ns / 1e9 / seconds
            print(
                f"main thread {name}: {thread} {per_turn_us:.0f} us a turn, {share:.3%} of a core"
            )
    rig.sampler.stop(5.0)


if __name__ == "__main__":
    main()

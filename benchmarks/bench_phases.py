"""What knowing the phase costs the training thread: per batch, per phase, per save, per step.

Each is timed with the agent's hooks and without, in turns. Usage: ``bench_phases.py [--rounds N]``.
"""

from __future__ import annotations

import argparse
import io
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

import vramscope

CALLS = 2000


class Numbers(torch.utils.data.IterableDataset):  # type: ignore[misc]  # torch is untyped here
    """Data without end that costs nothing to make."""

    def __iter__(self) -> Iterator[int]:
        while True:
            yield 0


def fetch() -> Callable[[], object]:
    """One batch of a loader without workers."""
    iterator = iter(torch.utils.data.DataLoader(Numbers(), batch_size=None))
    return lambda: next(iterator)


def save() -> Callable[[], object]:
    """A checkpoint of one number."""
    number = torch.ones(1)
    return lambda: torch.save(number, io.BytesIO())


def optimizer_step() -> Callable[[], object]:
    """The smallest optimizer step there is."""
    parameter = torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    return lambda: optimizer.step()


def phase() -> Callable[[], object]:
    """A phase with nothing in it."""

    def enter_and_leave() -> None:
        with vramscope.phase("eval"):
            pass

    return enter_and_leave


@contextmanager
def attached() -> Iterator[None]:
    """Watch this process, with nobody to tell."""
    vramscope.attach("http://127.0.0.1:9", "token", exit_timeout_s=0, spool_bytes=0)
    try:
        yield
    finally:
        vramscope.detach()


def microseconds(call: Callable[[], object]) -> float:
    """Microseconds of one call."""
    begin_ns = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - begin_ns) / CALLS / 1e3


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    print(f"{'call':16}{'without':>10}{'with':>10}{'costs':>10}   (us, median of {rounds})")
    for make in (fetch, phase, save, optimizer_step):
        call = make()
        call()
        without: list[float] = []
        watched: list[float] = []
        for _ in range(rounds):
            without.append(microseconds(call))
            with attached():
                watched.append(microseconds(call))
        before, after = statistics.median(without), statistics.median(watched)
        print(f"{make.__name__:16}{before:10.2f}{after:10.2f}{after - before:10.2f}")


if __name__ == "__main__":
    main()

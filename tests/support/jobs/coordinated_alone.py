"""One process that trains on the CPU, for what is hard to do to one that stands still.

coordinated_alone.py [--steps N] [--forks]
--steps: end after so many, else never. --forks: a second thread forks children all the time, each
of which steps an optimizer; "forked N", at the end, counts those that came through.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from typing import Any

import torch

CHILD_ENDS_WITHIN_S = 10


def train(steps: int, pause_s: float) -> None:
    """Train for some steps, 0 for ever."""
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], 0.1)
    step = 0
    while not steps or step < steps:
        step += 1
        weight.square().sum().backward()
        optimizer.step()
        time.sleep(pause_s)


class Forks:
    """Children, one after the other."""

    def __init__(self) -> None:
        self.good = 0
        weight = torch.nn.Parameter(torch.ones(4))
        weight.grad = torch.ones(4)
        self._optimizer = torch.optim.SGD([weight], 0.1)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Begin to fork."""
        self._thread.start()

    def stop(self) -> None:
        """Fork no more."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(0.05):
            child = os.fork()
            if child == 0:
                signal.alarm(CHILD_ENDS_WITHIN_S)
                # With the gradient that is there: autograd does not survive a fork.
                for _ in range(3):
                    self._optimizer.step()
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
            self.good += 1


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--forks", action="store_true")
    options: Any = parser.parse_args()
    torch.set_num_threads(1)
    forks = Forks()
    if options.forks:
        forks.start()
    train(options.steps, 0.005)
    if options.forks:
        forks.stop()
        print(f"forked {forks.good}", flush=True)


if __name__ == "__main__":
    main()

"""Data-parallel training on the CPU that tells by itself at which steps something was done to it.

coordinated.py FOLDER [--steps N] [--pause-s S] [--ask]
Each rank writes into the folder: acted-RANK, a line with the step whenever all of Python's garbage
is collected, which it never does by itself; losses-RANK, at the end, every loss to the last bit;
end-RANK, how the loop ended and after how many steps. --pause-s: what each step waits, so that some
ranks leave a small machine its processors. --ask: the loop asks vramscope.should_stop().
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import vramscope


class Training:
    """The loop of one rank."""

    def __init__(self, folder: Path) -> None:
        self.rank = dist.get_rank()
        self.step = 0
        self.losses: list[str] = []
        self._folder = folder
        torch.manual_seed(self.rank)
        self._model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32))
        self._optimizer = torch.optim.AdamW(self._model.parameters(), 0.01)
        gc.disable()
        gc.callbacks.append(self._collected)

    def run(self, steps: int, pause_s: float, *, asks: bool) -> str:
        """Train for some steps, 0 for ever; how it ended."""
        while not steps or self.step < steps:
            self.step += 1
            loss = self._model(torch.randn(16, 32)).square().mean()
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            self.losses.append(float(loss.detach()).hex())
            if asks and vramscope.should_stop():
                return "asked"
            time.sleep(pause_s)
        return "through"

    def write(self, name: str, text: str) -> None:
        """Write a file of this rank, whole or not at all."""
        path = self._folder / f"{name}-{self.rank}"
        path.with_suffix(".part").write_text(text)
        path.with_suffix(".part").rename(path)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            with (self._folder / f"acted-{self.rank}").open("a") as file:
                file.write(f"{self.step}\n")


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--pause-s", type=float, default=0.02)
    parser.add_argument("--ask", action="store_true")
    options: Any = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    training = Training(options.folder)
    how = "failed"
    try:
        how = training.run(options.steps, options.pause_s, asks=options.ask)
    except KeyboardInterrupt as error:
        how = type(error).__name__
    finally:
        training.write("losses", "\n".join(training.losses))
        training.write("end", f"{how} {training.step}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

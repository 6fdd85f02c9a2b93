"""Trains on batches of a loader, and stays for a while at a moment that is bad for commands.

bad_moments.py FOLDER MOMENT DEVICE     DEVICE is cuda or cpu

Moments: "capture" of a CUDA graph, with an optimizer step inside; "compile", the warm-up of
torch.compile; "evaluation" without optimizer steps; "stall", a loader that gives no batch; "exit",
a handler that runs as the interpreter ends. There it writes the file "in" into FOLDER and stays
until there is a file "go". In the end it writes "losses", every loss to the last bit, and
"seen", how many steps it took, with how many samples.
"""

from __future__ import annotations

import argparse
import atexit
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import vramscope

WIDTH, BATCH, WORKERS = 64, 8, 2
AT, STEPS = 30, 230
LONGEST_S = 90


class Samples(torch.utils.data.Dataset[Any]):  # type: ignore[misc]  # torch is untyped here
    """Numbers; one of them may be late."""

    def __init__(self, late: Callable[[], object] | None) -> None:
        self._late = late

    def __len__(self) -> int:
        return BATCH * STEPS

    def __getitem__(self, index: int) -> int:
        if index == BATCH * AT and self._late is not None:
            self._late()
        return index


class Job:
    """The training, and its moment."""

    def __init__(self, options: Any) -> None:
        self.folder: Path = options.folder
        self.moment: str = options.moment
        self.device: str = options.device
        torch.manual_seed(0)
        self.model: Any = self._model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.05)
        self.frequencies = torch.linspace(0.1, 1.0, WIDTH, device=self.device)
        self.forward: Any = self.model
        self.graph: Any = None
        self.kept: Any = None
        self.losses: list[str] = []
        self.step = 0
        self.samples = 0

    def stay(self) -> None:
        """Say that the moment is there, and wait for its end."""
        (self.folder / "in").touch()
        until_s = time.monotonic() + LONGEST_S
        while not (self.folder / "go").exists():
            if time.monotonic() > until_s:
                raise TimeoutError("nobody ended the moment")
            time.sleep(0.01)

    def run(self) -> None:
        """Train for one epoch."""
        late = self.stay if self.moment == "stall" else None
        loader: Any = torch.utils.data.DataLoader(
            Samples(late), batch_size=BATCH, num_workers=WORKERS
        )
        sizes = vramscope.batch_size(loader, accumulation=1)
        for number, batch in enumerate(loader, 1):
            samples = torch.sin(batch.to(self.device)[:, None] * self.frequencies)
            self._take(samples, sizes.accumulation)
            self.samples += len(batch)
            if number % sizes.accumulation:
                continue
            self._end_step()
            if vramscope.should_stop():
                break
            if self.step == AT:
                self._moment(samples)
        if self.moment == "exit":
            atexit.register(self.stay)
        (self.folder / "losses").write_text("\n".join(self.losses))
        (self.folder / "seen").write_text(f"{self.step} {self.samples}")

    def _take(self, samples: Any, accumulation: int) -> None:
        if self.graph is not None:
            self.graph.replay()
        loss = self._loss(self.forward(samples), samples) / accumulation
        loss.backward()
        self.losses.append(float(loss.detach()).hex())

    def _end_step(self) -> None:
        self.step += 1
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        time.sleep(0.005)

    def _moment(self, samples: Any) -> None:
        if self.moment == "evaluation":
            self._evaluate(samples)
        elif self.moment == "compile":
            self.forward = torch.compile(self.model, backend=self._backend)
        elif self.moment == "capture":
            self._capture()

    def _evaluate(self, samples: Any) -> None:
        self.model.eval()
        with torch.no_grad():
            for _ in range(20):
                self.model(samples)
            self.stay()
            self.model(samples)
        self.model.train()

    def _backend(self, graph: Any, inputs: Any) -> Any:
        self.stay()
        if self.device == "cpu":
            return graph.forward
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(graph, inputs)

    def _capture(self) -> None:
        model = self._model()
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        samples = torch.ones(BATCH, WIDTH, device=self.device)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._loss(model(samples), samples).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.stay()
            self._loss(model(samples), samples).backward()
            optimizer.step()  # the end of a step, by all that one can see
        before = [each.detach().clone() for each in model.parameters()]
        graph.replay()
        after = list(model.parameters())
        assert not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
        self.graph = graph
        self.kept = model, optimizer, samples  # whose memory the graph reads and writes

    def _loss(self, found: Any, samples: Any) -> Any:
        return (found - samples.roll(1, 1)).square().mean()

    def _model(self) -> Any:
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(2)]
        return nn.Sequential(*layers).to(self.device)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("moment")
    parser.add_argument("device", choices=["cuda", "cpu"])
    torch.set_num_threads(1)
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # else its sums are not the same each time
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else a process for each processor
    torch.use_deterministic_algorithms(True)
    Job(parser.parse_args()).run()


if __name__ == "__main__":
    main()

"""Brings an allocator into any state, by a command of its own, and lets it be until the next one.

any_state.py DEVICE     cuda, or cpu for an emulated one
It steps until SIGTERM. The command ``state`` takes a seed; on a GPU what it leaves is on several
streams, some of it waits for one, and CUDA graphs and memory pools keep some of it, or did.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from typing import Any

import torch

import vramscope

KIB, MIB = 1 << 10, 1 << 20
MOST_PIECES = 60
STREAMS = 3
SLEEP_CYCLES = 20_000_000
"""About 10 ms of a GPU's time, for what has to wait."""

stopping = False


def stop(*_: object) -> None:
    global stopping
    stopping = True


class States:
    """What the job holds: pieces, graphs and pools."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.held: list[Any] = []
        self.keepers: list[Any] = []
        self.streams: list[Any] = []
        if device == "cuda":
            self.streams = [torch.cuda.Stream() for _ in range(STREAMS)]

    def go_to(self, seed: int) -> None:
        """Take other things, and let go of some of what is there."""
        draw = random.Random(seed)
        if self.device == "cuda":
            # First: a capture begins by emptying the cache.
            for _ in range(draw.randrange(3)):
                self.keepers.append(draw.choice([self._graph, self._pool])(draw))
        for _ in range(draw.randrange(10, MOST_PIECES)):
            self._take(draw)
            if draw.random() < 0.3:
                self.held.pop(draw.randrange(len(self.held)))
        self.held = [each for each in self.held if draw.random() < 0.4]
        self.keepers = [each for each in self.keepers if draw.random() < 0.6]

    def _take(self, draw: random.Random) -> None:
        if not self.streams or draw.random() < 0.5:
            self.held.append(self._piece(draw))
            return
        stream = draw.choice(self.streams)
        with torch.cuda.stream(stream):
            self.held.append(self._piece(draw))
        if draw.random() < 0.3:
            # Used by another stream as well, which is still at it when the piece is freed.
            with torch.cuda.stream(self.streams[0]):
                torch.cuda._sleep(SLEEP_CYCLES)
                self.held.pop().record_stream(self.streams[0])
            self.held.append(self._piece(draw))

    def _piece(self, draw: random.Random) -> Any:
        size_bytes = draw.choice(
            [
                draw.randrange(1, 4 * KIB),
                draw.randrange(4 * KIB, MIB),
                draw.randrange(MIB, 10 * MIB),
                draw.randrange(10 * MIB, 64 * MIB),
            ]
        )
        return torch.empty(size_bytes, dtype=torch.uint8, device=self.device)

    def _graph(self, draw: random.Random) -> Any:
        source = torch.ones(draw.randrange(KIB, 4 * MIB), device="cuda")
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            found = source * 2 + source.sum()
        return graph, source, found

    def _pool(self, draw: random.Random) -> Any:
        make: Any = getattr(torch.cuda, "MemPool", None)
        if make is None:
            return None
        pool = make()
        with torch.cuda.use_mem_pool(pool):
            pieces = [self._piece(draw) for _ in range(4)]
        return pool, pieces[:2]


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    states = States(sys.argv[1])

    @vramscope.command
    def state(seed: int) -> dict[str, int]:
        """Go to another state."""
        states.go_to(seed)
        return {"pieces": len(states.held), "keepers": len(states.keepers), **reserved()}

    @vramscope.command
    def reserved() -> dict[str, int]:
        """What PyTorch holds."""
        return {"reserved_bytes": torch.cuda.memory_reserved()}

    weight = torch.nn.Parameter(torch.ones(16, device=sys.argv[1]))
    weight.grad = torch.ones_like(weight)
    optimizer = torch.optim.SGD([weight], 1e-3)
    while not stopping:
        optimizer.step()
        time.sleep(0.002)


if __name__ == "__main__":
    main()
